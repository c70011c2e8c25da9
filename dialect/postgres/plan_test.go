package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// TestPlans looks at the plans of all queries, as prepared statements keep them: planned while the table was empty,
// filled behind their backs, and analysed.
func TestPlans(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	conn, err := p.work.pool.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	for name, text := range p.work.queries {
		if _, err := conn.ExecContext(t.Context(), "PREPARE "+name+" AS "+text); err != nil {
			t.Fatalf("prepare %s: %v", name, err)
		}
	}
	for _, stage := range []struct {
		name string
		make func()
	}{
		{"empty", func() {}},
		{"filled", func() { b.fill(t, orders, 100_000, 20); b.fill(t, "refunds", 1000, 20) }},
		{"analysed", func() { b.exec(t, "VACUUM ANALYZE outbox") }},
	} {
		stage.make()
		for name, text := range p.work.queries {
			plan := explain(t, conn, name, text)
			for _, fault := range planFaults(name, plan) {
				t.Errorf("%s, table %s: %s in\n%s", name, stage.name, fault, plan)
			}
		}
	}
}

var parameter = regexp.MustCompile(`\$\d+`)

// explain gives the plan that a prepared statement has, whatever its arguments.
func explain(t *testing.T, conn *sqlx.Conn, name, text string) string {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range parameter.FindAllString(text, -1) {
		seen[p] = true
	}
	execute := "EXECUTE " + name
	if len(seen) > 0 {
		execute += "(NULL" + strings.Repeat(", NULL", len(seen)-1) + ")"
	}
	var lines []string
	if err := conn.SelectContext(t.Context(), &lines, "EXPLAIN (COSTS off) "+execute); err != nil {
		t.Fatalf("explain %s: %v", name, err)
	}
	return strings.Join(lines, "\n") + "\n"
}

// planFaults tells what a plan must not have. No query reads the whole table of messages, but page by page.
func planFaults(name, plan string) (faults []string) {
	if regexp.MustCompile(`Seq Scan on outbox( |\n)`).MatchString(plan) {
		faults = append(faults, "a sequential scan")
	}
	if name != "claim" {
		return faults
	}
	_, candidates, found := strings.Cut(plan, "CTE c\n")
	candidates, _, _ = strings.Cut(candidates, "CTE l\n")
	if !found || !strings.Contains(candidates, "Index Scan using outbox_due on outbox") {
		faults = append(faults, "no index scan on outbox_due")
	}
	if strings.Contains(candidates, "Sort") {
		faults = append(faults, "a sort, which would lock all that is due,")
	}
	return faults
}

// TestDoneIsHot settles messages done and finds that not one of these updates touched an index. A transaction that
// writes anywhere on the server meanwhile spoils the share, so a round waits until none does, and it is enough that one of
// many rounds is whole.
func TestDoneIsHot(t *testing.T) {
	t.Parallel()
	for _, payload := range []int{50, 200, 500} {
		t.Run(fmt.Sprint(payload, " bytes"), func(t *testing.T) {
			t.Parallel()
			const messages = 1000
			b := newServer(t, false).backend(t)
			hot := 0
			for range 50 {
				b.untilNobodyWrites(t)
				before, hotBefore := b.updates(t)
				b.fill(t, orders, messages, payload)
				b.drain(t)
				eventually(t, "the statistics", func() bool {
					all, hotNow := b.updates(t)
					hot = max(hot, hotNow-hotBefore)
					return all-before >= 2*messages
				})
				if hot == messages {
					return
				}
			}
			t.Errorf("%d of %d settlements were HOT updates, want all", hot, messages)
		})
	}
}

// untilNobodyWrites waits for the transactions of other sessions that have a number, which other tests hold for a while.
func (b postgresBackend) untilNobodyWrites(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		var writers int
		if err := b.db.Get(&writers, "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()"); err != nil {
			t.Fatal(err)
		}
		if writers == 0 {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// drain settles all messages done, in sessions that end with it: only then do they give away what they counted.
func (b postgresBackend) drain(t testing.TB) {
	t.Helper()
	p := b.postgres("a")
	defer func() { _ = p.work.pool.Close() }()
	for {
		claims := claim(t, p, testQuota(500))
		if len(claims) == 0 {
			return
		}
		if back, err := p.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
			t.Fatalf("Settle gave back %d, %v", len(back), err)
		}
	}
}

// updates counts those of outbox, and how many of them were HOT.
func (b postgresBackend) updates(t testing.TB) (all, hot int) {
	t.Helper()
	row := b.db.QueryRow("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'outbox'::regclass")
	if err := row.Scan(&all, &hot); err != nil {
		t.Fatal(err)
	}
	return all, hot
}
