package sqlite

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

const orders = "orders"

func testQuota(limit int) relay.Quota { return relay.Quota{RoutingKey: orders, Limit: limit} }

func testLeaseID() relay.LeaseID { return relay.LeaseID(1 + rand.Int64N(1<<62)) }

// relayStore opens the file for a relay whose leases have that length.
func (f testFile) relayStore(t testing.TB, name string, lease time.Duration) *Store {
	t.Helper()
	store, err := f.open(t, dialect.Options{Name: name, Lease: lease}).Store(name, "", lease)
	if err != nil {
		t.Fatal(err)
	}
	return store.(*Store)
}

// claim takes what the quotas ask for, under a new lease.
func claim(t testing.TB, s *Store, quotas ...relay.Quota) []relay.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), testLeaseID(), 30*time.Second, quotas)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return claims
}

func settleDone(claims []relay.Claim) []relay.Settlement {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("3@1234567"), Took: time.Millisecond})
	}
	return settlements
}

// fill inserts n due messages of a routing key in one statement.
func (f testFile) fill(t testing.TB, routingKey string, n int) {
	t.Helper()
	f.exec(t, `WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?2)
		INSERT INTO outbox (aggregatetype, type, aggregateid, payload) SELECT ?1, 'order_paid', n, 'x' FROM g`, routingKey, n)
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden keeps what runs on a user's database readable: a reviewer sees SQL, not fragments of it.
func TestGolden(t *testing.T) {
	t.Parallel()
	queries := sqlQueries()
	for name, text := range queries {
		golden(t, name+".golden.sql", strings.TrimSpace(text)+";\n")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden.sql"))
	if err != nil || len(files) != len(queries) {
		t.Errorf("there are %d golden files (%v) and %d queries", len(files), err, len(queries))
	}
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s is not current: run go test ./dialect/sqlite -run 'Golden|Plans' -update", file)
	}
}

// TestPlans looks at the plans of all queries, also those of people. They are the same after ANALYZE saw a table of a few
// rows: SQLite would then rather read all of it than look up many rows by their keys, however long it has become.
func TestPlans(t *testing.T) {
	t.Parallel()
	want := ""
	for _, rows := range []int{0, 1, 2, 50, 2000} {
		f := newFile(t)
		if rows > 0 {
			f.fill(t, orders, rows)
			claim(t, f.relayStore(t, "a", time.Hour), testQuota(min(rows, 100)))
		}
		f.exec(t, "ANALYZE")
		plans := f.plans(t)
		if rows == 0 {
			want = plans
			golden(t, "plans.golden.txt", plans)
		}
		if plans != want {
			t.Errorf("after ANALYZE of %d rows the plans are\n%s\nand without it\n%s", rows, plans, want)
		}
	}
	for step := range strings.Lines(want) {
		if strings.HasPrefix(strings.TrimSpace(step), "SCAN outbox\n") {
			t.Errorf("a query reads the whole table:\n%s", want)
		}
	}
}

// steady are the queries whose plans are no matter of luck: all but those that walk a table of few rows, and the walks for
// orphans and for what is old, which read a page of the key.
func steady() map[string]string {
	queries := sqlQueries()
	for _, name := range []string{"bury_relays", "orphans", "remove_attempts_page", "remove_operations_page", "remove_page", "watch"} {
		delete(queries, name)
	}
	queries["people_waiting"], queries["people_failed"] = textWaiting, textFailed
	return queries
}

func (f testFile) plans(t *testing.T) string {
	t.Helper()
	var all []string
	queries := steady()
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		var args []any
		for i := 1; strings.Contains(queries[name], fmt.Sprint("?", i)); i++ {
			args = append(args, "[]")
		}
		var steps []struct {
			ID, Parent, NotUsed int
			Detail              string
		}
		if err := f.app.Select(&steps, "EXPLAIN QUERY PLAN "+queries[name], args...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan := name
		depth := map[int]int{0: 1}
		for _, s := range steps {
			depth[s.ID] = depth[s.Parent] + 1
			plan += "\n" + strings.Repeat("  ", depth[s.Parent]) + s.Detail
		}
		all = append(all, plan)
	}
	return strings.Join(all, "\n\n") + "\n"
}

// TestClaimsInIndexOrder takes 20,000 messages, or a tenth of them, as outbox_due has them.
func TestClaimsInIndexOrder(t *testing.T) {
	t.Parallel()
	rows := 2000
	if os.Getenv("OUTBOXD_TEST_FULL") == "1" {
		rows = 20_000
	}
	f := newFile(t)
	f.fill(t, orders, rows)
	f.exec(t, "UPDATE outbox SET due_at = due_at - 1000000 * (seq * 7919 % ?)", rows) // another order: 7919 is a prime
	var want []int64
	if err := f.app.Select(&want, "SELECT seq FROM outbox ORDER BY due_at, seq"); err != nil {
		t.Fatal(err)
	}
	s := f.relayStore(t, "a", time.Hour)
	for expected := range slices.Chunk(want, 500) {
		got := make([]int64, 0, len(expected))
		for _, c := range claim(t, s, testQuota(500)) {
			got = append(got, c.Seq)
		}
		if slices.Sort(expected); !slices.Equal(got, expected) {
			t.Fatalf("a claim of 500 is not the longest due: %d messages from %d on", len(got), expected[0])
		}
	}
	if claims := claim(t, s, testQuota(1)); len(claims) > 0 {
		t.Fatalf("%d more were claimed", len(claims))
	}
}

// TestRenewalsDiffer renews as fast as it can: within one millisecond of SQLite's clock each shows.
func TestRenewalsDiffer(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 1)
	s := f.relayStore(t, "a", time.Hour)
	lease := claim(t, s, testQuota(1))[0].Lease
	seen := map[string]bool{}
	for range 200 {
		_, leases, err := s.Watch(t.Context())
		if err != nil || len(leases) != 1 || seen[leases[0].Renewed] {
			t.Fatalf("Watch shows %v, %v, after %d renewals", leases, err, len(seen))
		}
		seen[leases[0].Renewed] = true
		if lost, err := s.Renew(t.Context(), []relay.LeaseID{lease}); err != nil || len(lost) > 0 {
			t.Fatalf("Renew lost %v, %v", lost, err)
		}
	}
}

// TestRefusedRowDelaysItselfOnly has a trigger of the application's that refuses one row of a batch.
func TestRefusedRowDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 20)
	s := f.relayStore(t, "a", time.Hour)
	claims := claim(t, s, testQuota(20))
	f.exec(t, `CREATE TRIGGER no BEFORE UPDATE ON outbox WHEN new.seq = 7 BEGIN SELECT raise(ABORT, 'QzQx'); END`)
	settlements := settleDone(claims)
	settlements[3] = relay.Release(claims[3])
	back, err := s.Settle(t.Context(), settlements)
	if err != nil || len(back) != 1 || back[0].Why != relay.Refused || back[0].Row().Seq != 7 {
		t.Fatalf("Settle gave back %v, %v, want the refused row", back, err)
	}
	if words := back[0].Err.Error(); strings.Contains(words, "QzQx") || !strings.Contains(words, claims[6].ID) {
		t.Errorf("of the refused row it says %s", words)
	}
	var left []int64
	if err := f.app.Select(&left, "SELECT seq FROM outbox WHERE state = 'in_flight'"); err != nil || !slices.Equal(left, []int64{7}) {
		t.Errorf("still in flight: %v, %v", left, err)
	}
}

// sqlQueries are all statements of the Store by the names that golden files give them.
func sqlQueries() map[string]string {
	return map[string]string{
		"due":                    sqlDue,
		"due_one":                sqlDueOne,
		"lease":                  sqlLease,
		"new_lease":              sqlNewLease,
		"claim":                  sqlClaim,
		"taken":                  sqlTaken,
		"held":                   sqlHeld,
		"load":                   sqlLoad,
		"settle":                 sqlSettle,
		"record":                 sqlRecord,
		"tell":                   sqlTell,
		"fate":                   sqlFate,
		"renew":                  sqlRenew,
		"finish":                 sqlFinish,
		"watch":                  sqlWatch,
		"take":                   sqlTake,
		"held_since":             sqlHeldSince,
		"move":                   sqlMove,
		"orphans":                sqlOrphans,
		"adopt":                  sqlAdopt,
		"lapse":                  sqlLapse,
		"remove_page":            sqlRemovePage,
		"remove_message":         sqlRemoveMessage,
		"remove_attempts_page":   sqlRemoveAttemptsPage,
		"remove_attempt":         sqlRemoveAttempt,
		"remove_operations_page": sqlRemoveOperationsPage,
		"remove_corrections":     sqlRemoveCorrections,
		"remove_operation":       sqlRemoveOperation,
		"routing_keys":           sqlRoutingKeys,
		"waiting":                sqlWaiting,
		"waiting_newest":         sqlWaitingNewest,
		"beat":                   sqlBeat,
		"breakers":               sqlBreakers,
		"bury_breakers":          sqlBuryBreakers,
		"bury_relays":            sqlBuryRelays,
		"leave_breakers":         sqlLeaveBreakers,
		"leave":                  sqlLeave,
	}
}
