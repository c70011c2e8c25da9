package dialecttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// TestAudits holds an engine's audits to their answers. open makes an outbox with all tables.
func TestAudits(t *testing.T, open func(t *testing.T) Backend) {
	for name, run := range map[string]func(t *testing.T, b Backend){
		"known state": testAudits, "nothing": testAuditsOfNothing, "only read": testAuditsOnlyRead, "bounded": testAuditsAreBounded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open(t))
		})
	}
}

// lines are an answer: the names of its columns, and each row with times as how long ago they were, to five minutes, and
// ages in the same form.
type lines struct {
	columns string
	rows    []string
}

// answers are those to the known state, but of throughput, which depends on the minute.
func answers() map[string]lines {
	return map[string]lines{
		"stuck": {"id routing_key type state stuck_since stuck_s why attempts lapses error_class last_error", []string{
			"b orders sent pending 20m0s 20m0s due, and no relay takes it 0 0 no_policy -",
			"1 orders paid pending 10m0s 10m0s due, and no relay takes it 0 0 - -",
			"2 orders paid pending 5m0s 5m0s due, and no relay takes it 0 1 - -",
			"6 orders paid in_flight 5m0s 5m0s in flight, and relay r1 does not renew its lease 0 0 - -",
			"7 orders paid in_flight 0s 0s in flight, and its lease is gone 0 0 - -",
		}},
		"oldest_due": {"routing_key type oldest_due_at oldest_due_s due", []string{
			"orders sent 20m0s 20m0s 1",
			"orders paid 10m0s 10m0s 2",
		}},
		"errors": {"state routing_key type schema_version reason error_class error messages first_at last_at sample_id sample_error", []string{
			"failed orders paid 1 rejected http_4xx … 2 10m0s 0s 8 422",
			"pending orders paid 1 - http_5xx … 1 0s 0s 4 503",
		}},
		"waiting": {"routing_key type schema_version why error_class messages oldest_at oldest_s next_due_at", []string{
			"orders paid 1 delayed - 1 0s 0s -1h0m0s",
			"orders paid 1 due - 2 0s 0s 10m0s",
			"orders paid 1 in_flight - 1 0s 0s -",
			"orders paid 1 no_policy no_policy 1 0s 0s -1h0m0s",
			"orders paid 1 retrying http_5xx 1 0s 0s -1h0m0s",
			"orders sent 2 due no_policy 1 30m0s 30m0s 20m0s",
		}},
		"failures": {"routing_key type reason error_class messages first_failed_at last_failed_at sample_id sample_error", []string{
			"orders paid rejected http_4xx 2 10m0s 0s 8 422",
		}},
		"attempts": {"message_id life attempt started_at duration_s relay outcome status error_class error state reason", []string{
			"c 0 1 0s 1 r1 fail 400 http_4xx 400 failed rejected",
		}},
		"in_flight": {"relay lease_id claimed_at claimed_before_s renewed_at renewed_before_s length_s claimed in_flight routing_keys", []string{
			"r1 6 5m0s 5m0s 5m0s 5m0s 30 3 1 orders",
		}},
		"versions": {"routing_key type schema_version waiting waiting_since no_policy", []string{
			"orders sent 2 1 30m0s 1",
			"orders paid 1 5 0s 1",
		}},
		"operations": {"id op filter actor note dry_run requested_at applied_at affected detail applier", []string{
			`e pause {"all":true} bob - true 40m0s - - - -`,
			`f cancel {"type":"mail"} ann - false 5m0s 5m0s 0 - r2`,
			`d replay {"state":"failed"} ann fixed false 20m0s 15m0s 3 {"skipped":{"locked":1}} r1`,
		}},
		"relays": {"name host version seen_at seen_before_s started_at config_hash destinations leases", []string{
			`r1 h1 0.1.0 0s 0s 1h0m0s abc ["kafka","audit"] 1`,
			`r2 h2 0.1.0 0s 0s 0s abd [] 0`,
		}},
		"breakers": {"name relay state width failures_in_a_row last_error told_at told_before_s", []string{
			"hand r2 - - - - 0s 0s",
			"kafka/orders r1 open 0 5 broker: refused 0s 0s",
			"kafka r1 ok 0 0  0s 0s",
		}},
	}
}

// The audits tell of the known state what is there, as the reader.
func testAudits(t *testing.T, b Backend) {
	FillForAudits(t, b)
	db := b.Reader()
	for name, want := range answers() {
		got := tell(t, b, db, name, "")
		if name == "waiting" {
			slices.Sort(got.rows) // Most of them are as old as each other.
		}
		if got.columns != want.columns || !slices.Equal(got.rows, want.rows) {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", name, got.columns, strings.Join(got.rows, "\n"), want.columns, strings.Join(want.rows, "\n"))
		}
	}
	for name, look := range looks(db) {
		if err := look(t.Context()); err != nil {
			t.Errorf("%s, as the reader: %v", name, err)
		}
	}
	if rows := tell(t, b, db, dialect.AuditOfOne, ID("4")).rows; !slices.Equal(rows, []string{"4 0 1 0s 1.5 r1 retry 503 http_5xx 503 pending -", "4 1 1 0s 2 r2 lapse - - - pending -"}) {
		t.Errorf("attempts of 4: %q", rows)
	}
	if rows := tell(t, b, db, dialect.AuditOfOne, ID("1")).rows; len(rows) != 0 {
		t.Errorf("attempts of 1: %q", rows)
	}
	answer := ask(t, db, "throughput", "")
	if got, want := strings.Join(answer.Columns, " "), "minute inserted done failed median_to_done_s p99_to_done_s"; got != want {
		t.Errorf("throughput: %s, want %s", got, want)
	}
	var sums [3]int64
	for _, row := range answer.Rows {
		for i := range sums {
			sums[i] += row[1+i].(int64)
		}
		if row[2] == int64(4) && (row[4] != 2.0 || row[5] != 60.0) {
			t.Errorf("the time from INSERT to done is %v and %v, want 2 s and 60 s", row[4], row[5])
		}
	}
	if sums != [3]int64{15, 4, 2} {
		t.Errorf("inserted, done, failed: %v", sums)
	}
}

// An empty outbox has nothing to tell, and that is no error.
func testAuditsOfNothing(t *testing.T, b Backend) {
	db := b.Reader()
	all := audits(t, db)
	if len(all) != len(answers())+1 {
		t.Fatalf("%d audits: this test knows %d", len(all), len(answers())+1)
	}
	for _, a := range all {
		if answer := ask(t, db, a.Name, ""); len(answer.Rows) != 0 || len(answer.Columns) == 0 {
			t.Errorf("%s: %+v", a.Name, answer)
		}
	}
}

// An audit cannot write. Of an id that cannot be one it says that no message has it, where ids are UUIDs.
func testAuditsOnlyRead(t *testing.T, b Backend) {
	db := b.Open()
	_, err := db.Audit(t.Context(), dialect.Audit{Name: "x", SQL: "INSERT INTO " + b.Forms().Outbox + " (type) VALUES ('x')"}, "")
	if dialect.ClassOf(err) != b.Forms().NoWrite {
		t.Errorf("an INSERT: %v", err)
	}
	if answer := ask(t, db, "oldest_due", ""); len(answer.Rows) != 0 {
		t.Errorf("an INSERT went through: %v", answer)
	}
	for _, a := range audits(t, db) {
		refused := b.Forms().UUIDs && a.Name == dialect.AuditOfOne
		if _, err := db.Audit(t.Context(), a, "7"); errors.Is(err, dialect.ErrNotFound) != refused || !refused && err != nil {
			t.Errorf("%s of an id that is no UUID: %v", a.Name, err)
		}
	}
}

// However much there is, the audits look at the messages that their comments name, along an index.
func testAuditsAreBounded(t *testing.T, b Backend) {
	f := b.Forms()
	many(t, b, dialect.CountBound+5, "type, due_at", "'a', "+f.Plus(f.Now, -time.Hour))
	many(t, b, dialect.CountBound+5, "type, state, due_at, failed_at, reason", "'b', 'failed', "+f.Never+", "+f.Now+", 'unknown'")
	many(t, b, 3*dialect.CountBound, "type, state, due_at, done_at", "'c', 'done', "+f.Never+", "+f.Now)
	execute(t, b, f.Analyze)
	db := b.Open()
	for name, want := range map[string]string{"waiting": "a a 1 due - 10000 0s 0s 1h0m0s", "oldest_due": "a a 1h0m0s 1h0m0s 10000", "versions": "a a 1 10000 0s 0", "failures": "b b unknown - 10000"} {
		if rows := tell(t, b, db, name, "").rows; len(rows) != 1 || !strings.HasPrefix(rows[0], want) {
			t.Errorf("%s: %q, want %s", name, rows, want)
		}
	}
	if rows := tell(t, b, db, "stuck", "").rows; len(rows) != 100 {
		t.Errorf("%d are stuck, want the first 100", len(rows))
	}
	for _, a := range audits(t, db) {
		if step := b.ReadsAll(a); step != "" {
			t.Errorf("%s reads the whole table: %s", a.Name, step)
		}
	}
}

func audits(t *testing.T, db DB) []dialect.Audit {
	t.Helper()
	all, err := db.Audits()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func ask(t *testing.T, db DB, name, id string) dialect.Answer {
	t.Helper()
	all := audits(t, db)
	i := slices.IndexFunc(all, func(a dialect.Audit) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("there is no audit %s", name)
	}
	answer, err := db.Audit(t.Context(), all[i], id)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// tell asks, and tells the answer as lines.
func tell(t *testing.T, b Backend, db DB, name, id string) (told lines) {
	t.Helper()
	answer := ask(t, db, name, id)
	for _, row := range answer.Rows {
		cells := make([]string, len(row))
		for i, value := range row {
			column := answer.Columns[i]
			cells[i] = cell(column, b.Forms().Value(column, value))
		}
		told.rows = append(told.rows, strings.Join(cells, " "))
	}
	told.columns = strings.Join(answer.Columns, " ")
	return told
}

func cell(column string, value any) string {
	ago := func(d time.Duration) string { return d.Round(5 * time.Minute).String() }
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return strings.TrimPrefix(v, ID(""))
	case time.Time:
		return ago(time.Since(v))
	case int64:
		if strings.HasSuffix(column, "_s") {
			return ago(time.Duration(v) * time.Second)
		}
	}
	return fmt.Sprint(value)
}
