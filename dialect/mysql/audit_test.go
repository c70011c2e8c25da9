package mysql

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// auditState adds to the known state: b waits for a version to be accepted, c failed before 8 did, and d, e, f are operations.
const auditState = `
INSERT INTO outbox (id, aggregatetype, type, schema_version, created_at, due_at, error_class)
  VALUES ('00000000-0000-7000-8000-00000000000b', 'orders', 'sent', 2, UTC_TIMESTAMP(6) - INTERVAL 30 MINUTE, UTC_TIMESTAMP(6) - INTERVAL 20 MINUTE, 'no_policy');
INSERT INTO outbox (id, aggregatetype, type, state, due_at, failed_at, reason, error_class, last_error)
  VALUES ('00000000-0000-7000-8000-00000000000c', 'orders', 'paid', 'failed', '9999-12-31', UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE, 'rejected', 'http_4xx', '400');
UPDATE outbox SET created_at = done_at - INTERVAL 3 SECOND WHERE state = 'done';
UPDATE outbox_lease SET claimed_at = claimed_at + INTERVAL 30 SECOND; -- after 2 was due
-- The lease of 6 also held 7, which another one has now, and a, which is done. Three more are done, after 1, 2 and 60 s.
UPDATE outbox SET lease_id = 6 WHERE state = 'done';
UPDATE outbox_lease SET ids = JSON_ARRAY_APPEND(ids, '$', (SELECT seq FROM outbox WHERE id LIKE '%7'));
INSERT INTO outbox (type, state, due_at, created_at, done_at)
  SELECT 'mail', 'done', '9999-12-31', done_at - INTERVAL took SECOND, done_at
  FROM outbox JOIN JSON_TABLE('[1,2,60]', '$[*]' COLUMNS (took int PATH '$')) j WHERE state = 'done';
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, error_class, error)
  VALUES ('00000000-0000-7000-8000-00000000000c', 0, 1, 'r1', UTC_TIMESTAMP(6), 1000000, 'fail', 'http_4xx', '400');
INSERT INTO outbox_control (kind, name) VALUES ('pause', 'everything');
INSERT INTO outbox_operation (id, op, filter, actor, note, dry_run, requested_at, applied_at, affected, detail, applier) VALUES
  ('00000000-0000-7000-8000-00000000000d', 'replay', '{"state":"failed"}', 'ann', 'fixed', false, UTC_TIMESTAMP(6) - INTERVAL 20 MINUTE, UTC_TIMESTAMP(6) - INTERVAL 15 MINUTE, 3, '{"skipped":{"locked":1}}', 'r1'),
  ('00000000-0000-7000-8000-00000000000e', 'pause', '{"all":true}', 'bob', NULL, true, UTC_TIMESTAMP(6) - INTERVAL 40 MINUTE, NULL, NULL, NULL, NULL),
  ('00000000-0000-7000-8000-00000000000f', 'cancel', '{"type":"mail"}', 'ann', NULL, false, UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE, UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE, 0, NULL, 'r2');
`

// reader connects as outboxd does, as an account that has the rights of outbox_reader.
func (d testDatabase) reader(t *testing.T) *DB {
	t.Helper()
	roles, err := Script("roles.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, "CREATE USER "+d.schema)
	t.Cleanup(func() { d.exec(t, "DROP USER "+d.schema) })
	const role = "TO outbox_reader, outbox_operator, outbox_corrector"
	for _, statement := range split(roles) {
		if strings.Contains(statement, role) {
			d.exec(t, strings.ReplaceAll(statement, role, "TO "+d.schema))
		}
	}
	d.url = withUser(t, d.url, d.schema)
	return d.connect(t, dialect.Options{})
}

// audits are the answers to the known state, all columns of each row: times as how long ago they were, to five minutes,
// ages in the same form.
var audits = map[string]struct {
	columns string
	rows    []string
}{
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
	"failures": {"routing_key type reason error_class messages first_failed_at last_failed_at sample_id sample_error", []string{
		"orders paid rejected http_4xx 2 10m0s 0s 8 422",
	}},
	"attempts": {"message_id life attempt started_at duration_s relay outcome error_class error state reason", []string{
		"c 0 1 0s 1 r1 fail http_4xx 400 failed rejected",
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

// The audit queries tell of the known state what is there, as the reader.
func TestAudits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server testServer) {
		d := server.newDatabase(t)
		d.exec(t, knownState+auditState)
		db := d.reader(t)
		for name, want := range audits {
			if columns, rows := tell(t, db, name, ""); columns != want.columns || !slices.Equal(rows, want.rows) {
				t.Errorf("%s: %s\n%s\nwant %s\n%s", name, columns, strings.Join(rows, "\n"), want.columns, strings.Join(want.rows, "\n"))
			}
		}
		const id = "00000000-0000-7000-8000-00000000000"
		if _, rows := tell(t, db, dialect.AuditOfOne, id+"4"); !slices.Equal(rows, []string{"4 0 1 0s 1.5 r1 retry http_5xx 503 pending -", "4 1 1 0s 2 r2 lapse - - pending -"}) {
			t.Errorf("attempts of 4: %q", rows)
		}
		if _, rows := tell(t, db, dialect.AuditOfOne, id+"1"); len(rows) != 0 {
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
	})
}

// An empty outbox has nothing to tell, and that is no error.
func TestAuditsOfNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server testServer) {
		db := server.newDatabase(t).reader(t)
		all, err := db.Audits()
		if err != nil || len(all) != len(audits)+1 {
			t.Fatalf("%d audits, %v: this test knows %d", len(all), err, len(audits)+1)
		}
		for _, a := range all {
			if answer := ask(t, db, a.Name, ""); len(answer.Rows) != 0 || len(answer.Columns) == 0 {
				t.Errorf("%s: %+v", a.Name, answer)
			}
		}
	})
}

func ask(t *testing.T, db *DB, name, id string) dialect.Answer {
	t.Helper()
	all, err := db.Audits()
	if err != nil {
		t.Fatal(err)
	}
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

// tell is an answer as lines.
func tell(t *testing.T, db *DB, name, id string) (columns string, rows []string) {
	t.Helper()
	answer := ask(t, db, name, id)
	for _, row := range answer.Rows {
		cells := make([]string, len(row))
		for i, value := range row {
			cells[i] = cell(answer.Columns[i], value)
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	return strings.Join(answer.Columns, " "), rows
}

func cell(column string, value any) string {
	ago := func(d time.Duration) string { return d.Round(5 * time.Minute).String() }
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return strings.TrimPrefix(v, "00000000-0000-7000-8000-00000000000")
	case time.Time:
		return ago(time.Since(v))
	case int64:
		if column == "dry_run" {
			return fmt.Sprint(v == 1)
		}
		if strings.HasSuffix(column, "_s") {
			return ago(time.Duration(v) * time.Second)
		}
	}
	return fmt.Sprint(value)
}

// An audit cannot write.
func TestAuditOnlyReads(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server testServer) {
		d := server.newDatabase(t)
		db := d.connect(t, dialect.Options{})
		_, err := db.Audit(t.Context(), dialect.Audit{Name: "x", SQL: "INSERT INTO outbox (type) VALUES ('x')"}, "")
		if err == nil {
			t.Error("an INSERT was not refused")
		}
		if answer := ask(t, db, "oldest_due", ""); len(answer.Rows) != 0 {
			t.Errorf("an INSERT went through: %v", answer)
		}
	})
}

// People run the audits in sessions of whatever settings their client has.
func TestAuditsInAnySession(t *testing.T) {
	t.Parallel()
	sessions := []string{
		"SET NAMES utf8mb4", "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET NAMES latin1",
		"SET sql_mode = ''", "SET sql_mode = 'ANSI,ONLY_FULL_GROUP_BY'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES,TRADITIONAL'",
		"SET time_zone = '+02:00'", "SET autocommit = 0",
	}
	onBoth(t, func(t *testing.T, server testServer) {
		d := server.newDatabase(t)
		d.exec(t, knownState+auditState)
		all, err := d.connect(t, dialect.Options{}).Audits()
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range sessions {
			conn, err := d.db.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			for _, statement := range []string{session, "SET @outbox_id = '00000000-0000-7000-8000-000000000008'"} {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range all {
				answer, err := dialect.Ask(t.Context(), conn, a.SQL)
				if err != nil || len(answer.Rows) == 0 {
					t.Errorf("after %s, %s has %d rows: %v", session, a.Name, len(answer.Rows), err)
				}
				if a.Name == dialect.AuditOfOne && len(answer.Rows) != 1 {
					t.Errorf("after %s, 8 has %d attempts", session, len(answer.Rows))
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The audits run as they are in the client, where the message is a variable.
func TestAuditsRunInClient(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server testServer) {
		client, err := exec.LookPath("mariadb")
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("the client mariadb is not installed")
			}
			t.Skip("the client mariadb is not installed")
		}
		d := server.newDatabase(t)
		d.exec(t, knownState+auditState)
		all, err := d.connect(t, dialect.Options{}).Audits()
		if err != nil {
			t.Fatal(err)
		}
		config, err := parseURL(server.url, false)
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(config.Addr, ":")
		for _, a := range all {
			text := "SET @outbox_id = '00000000-0000-7000-8000-000000000008';\n" + a.SQL
			cmd := exec.CommandContext(t.Context(), client, "--no-defaults", "--user=root", "--host="+host, "--port="+port, d.schema)
			cmd.Stdin = strings.NewReader(text)
			out, err := cmd.CombinedOutput()
			if lines := strings.Count(string(out), "\n"); err != nil || lines < 2 || a.Name == dialect.AuditOfOne && lines != 2 {
				t.Errorf("%s: %v: %s", a.Name, err, out)
			}
		}
	})
}
