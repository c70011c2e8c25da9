package mysql

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// rowsOfPlans is how many messages plans and claims are tried on.
func rowsOfPlans() int {
	switch {
	case os.Getenv("OUTBOXD_TEST_SLOW") != "":
		return 1_000_000
	case os.Getenv("OUTBOXD_TEST_FULL") != "":
		return 100_000
	}
	return 20_000
}

// sampleArguments are some for each query, as the Store gives them.
func sampleArguments() map[string][]any {
	const seqs, pairs, leases = "[1,2,3]", "[[1,7],[2,7]]", "[7,8]"
	return map[string][]any{
		"claim":                  {orders, 0, noFloor, 500},
		"claim_one":              {"01900000-0000-7000-8000-000000000000"},
		"claim_lease":            {7, "a", 1000, seqs, "shop"},
		"claim_take":             {seqs, 7},
		"floor":                  {orders, noFloor},
		"held":                   {7, "a"},
		"load":                   {pairs},
		"settle_done":            {`[[1,7,"x"]]`},
		"settle":                 {`[[1,7,"failed",0,1,0,0,null,"rejected","c","e","","fail",null,1,422,2]]`},
		"record":                 {"a", `[[1,7,"failed",0,1,0,0,null,"rejected","c","e","","fail",null,1,422,2]]`},
		"tell":                   {`[[1,7,"told",null]]`},
		"lock":                   {pairs},
		"fates":                  {seqs},
		"renew":                  {leases, "a"},
		"renewed":                {leases, "a"},
		"finish":                 {leases, "a"},
		"watch":                  {},
		"take_lock":              {7, "2026-01-01 00:00:00.000000"},
		"take":                   {"a", 7},
		"move":                   {7, "a"},
		"move_left":              {7, "a"},
		"lapse":                  {pairs, nil, nil},
		"lapse_record":           {"a", nil, nil, pairs},
		"orphans":                {0, 5000},
		"remove_page":            {1000, 1000, 1000, 0, 500},
		"remove_held":            {},
		"remove_lock":            {seqs, 1000, 1000},
		"remove_messages":        {seqs},
		"remove_attempts_page":   {1000, 0, 500},
		"remove_attempts":        {seqs},
		"remove_operations_page": {1000, "", 500},
		"remove_corrections":     {"x", 500},
		"remove_operation":       {"x"},
		"routing_keys":           {"a", 0, "a"},
		"waiting":                {orders, 9, orders, 9, 9},
		"waiting_newest":         {orders, 9, orders, 9, 9},
		"suspects":               {orders, 9, orders, 9, orders, 9, 9},
		"suspects_newest":        {orders, 9, orders, 9, orders, 9, 9},
		"beat":                   {"a", "h", "v", "c", "[]", "i"},
		"breakers":               {"a"},
		"free_breakers":          {`[["kafka","a"]]`},
		"show":                   {"a", `[["kafka","{}"]]`},
		"dead":                   {"a"},
		"forget_breaker":         {"kafka", "a", "a"},
		"forget_relay":           {"a"},
		"leave":                  {"a"},
		"leave_breakers":         {"a"},
	}
}

// TestPlans looks at the plans of all queries, which the servers make anew each time: on a table whose statistics are still
// those of the empty one, and on an analysed one.
func TestPlans(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		for _, stage := range []struct {
			name string
			make func()
		}{
			{"filled", func() {
				b.exec(t, "ALTER TABLE outbox STATS_AUTO_RECALC = 0")
				b.fill(t, orders, rowsOfPlans(), 20)
				b.fill(t, "refunds", 1000, 20)
			}},
			{"analysed", func() { b.exec(t, "ANALYZE TABLE outbox") }},
		} {
			stage.make()
			for name, text := range s.work.queries {
				plan, err := explain(t.Context(), s.work.pool, "EXPLAIN FORMAT = TRADITIONAL "+text, sampleArguments()[name]...)
				if err != nil {
					t.Fatalf("explain %s: %v", name, err)
				}
				for _, fault := range planFaults(name, plan) {
					t.Errorf("%s, table %s: %s in\n%+v", name, stage.name, fault, plan)
				}
			}
		}
	})
}

// planFaults tells what a plan must not have. No query reads the whole table of messages, but page by page; none sorts, but
// the few rows that a UNION put together.
func planFaults(name string, plan []planStep) (faults []string) {
	for _, step := range plan {
		if step.kind == "INSERT" {
			continue // MySQL lists the table that is written, as if it read all of it.
		}
		if slices.Contains([]string{"o", "outbox"}, step.table) && slices.Contains([]string{"ALL", "index"}, step.access) {
			faults = append(faults, "a scan of all messages")
		}
		if name == "free_breakers" && step.table == "c" && step.access != "eq_ref" {
			faults = append(faults, "a scan that locks breakers of other relays in passing")
		}
		if strings.Contains(step.extra, "filesort") && !strings.HasPrefix(step.table, "<union") {
			faults = append(faults, "a sort")
		}
	}
	if name == "claim" && !walksIndex(plan) {
		faults = append(faults, "no range of outbox_due")
	}
	return faults
}

// TestClaimsWalkTheIndex claims all of a large table while each claim before is still open: in the index's order, as many as
// asked for, and on MySQL, which shows them, with no lock beyond.
func TestClaimsWalkTheIndex(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		const limit, open = 500, 4
		b.fill(t, orders, rowsOfPlans(), 20)
		s := b.store("a")
		var want, got []string
		b.read(&want, "SELECT id FROM outbox ORDER BY seq LIMIT ?", limit*open)
		for range open {
			claims, _ := openClaim(t, s, testLeaseID(), testQuota(limit))
			got = append(got, claimIDs(claims)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d claims of %d did not take the first messages in the order of their seq, but %d", open, limit, len(got))
		}
		if b.server.name == "MariaDB" {
			return
		}
		var locked []int
		b.read(&locked, `SELECT COUNT(DISTINCT LOCK_DATA) FROM performance_schema.data_locks
			WHERE OBJECT_SCHEMA = ? AND OBJECT_NAME = 'outbox' AND INDEX_NAME = 'PRIMARY' AND LOCK_TYPE = 'RECORD'`, b.schema)
		if locked[0] != limit*open {
			t.Errorf("%d messages are locked, want %d", locked[0], limit*open)
		}
	})
}
