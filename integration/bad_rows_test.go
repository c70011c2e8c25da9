package integration

import (
	"fmt"
	"strings"
	"testing"
)

// oddRow is what somebody's hand makes of a message, and the state and reason that it comes to.
type oddRow struct{ name, set, want string }

// oddities are what a hand can do to one engine's tables, beside what it can do to all.
type oddities struct {
	rows   []oddRow
	leases []string // rows of outbox_lease: 1 holds the messages under it, 2 is good for another hour, 5 has no numbers, the rest knows no message
	refuse []string // statements that make every write to a message in flight of type refused an error
}

// oddEverywhere are rows in states that no relay makes, and every engine's constraints let be.
var oddEverywhere = []oddRow{
	{"in flight under no lease", "state = 'in_flight', due_at = {not due}", "done"},
	{"in flight under a lease of nobody", "state = 'in_flight', due_at = {not due}, lease_id = 4711", "done"},
	{"in flight under a dead lease", "state = 'in_flight', due_at = {not due}, lease_id = 1", "done"},
	{"in flight beside a lease that knows nothing of it", "state = 'in_flight', due_at = {not due}, lease_id = 2", "in_flight"},
	{"pending under a dead lease", "lease_id = 1", "done"},
	{"a negative lease", "lease_id = -7", "done"},
	{"sent before it was inserted", "created_at = {next year}", "done"},
	{"due since long", "due_at = {long ago}", "done"},
	{"due much later", "due_at = {last day}", "pending"},
	{"unknown in the future", "unknown_since = {next year}", "done"},
	{"all attempts used", "attempts = 1000", "done"},
	{"most attempts", "attempts = 2147483647", "done"},
	{"many lapses", "lapses = 1000", "failed lease_lost"},
	{"most lapses, in flight", "lapses = 2147483647, state = 'in_flight', due_at = {not due}", "failed lease_lost"},
	{"most replays", "replays = 2147483647", "done"},
	{"the wire key of another", "send_id = (SELECT id FROM (SELECT id FROM outbox WHERE type = 'neighbour' LIMIT 1) AS n)", "done"},
	{"a result and not done", "result = '3@17'", "done"},
	{"a header that is no text", `headers = '{"a": {"b": 1}}'`, "failed rejected"},
	{"no payload at all", "payload = NULL", "done"},
	{"failed and resolved", "state = 'failed', due_at = {not due}, failed_at = {next year}, reason = 'lease_lost', resolved_at = {now}", "failed lease_lost"},
	{"done without a send", "state = 'done', due_at = {not due}, done_at = {now}, lease_id = 1", "done"},
}

func postgresOddities() oddities {
	return oddities{
		rows: []oddRow{
			{"from the first day", "created_at = '4713-01-01 00:00:00+00 BC', due_at = '4713-01-01 00:00:00+00 BC'", "failed rejected"}, // JSON has no such date
			{"from the last day", "created_at = '294276-12-31 00:00:00+00'", "failed rejected"},
			{"expires never", "expires_at = 'infinity'", "done"},
			{"expired since ever", "expires_at = '-infinity'", "failed expired"},
			{"unknown since the first day", "unknown_since = '4713-01-01 00:00:00+00 BC'", "done"},
			{"no version", "schema_version = -2147483648", "done"},
			{"an error and no attempt", "error_class = repeat('x', 3000), last_error = E'a\\nb'", "done"},
			{"a long result and not done", "result = repeat('x', 3000)", "done"},
			{"no content type", "content_type = ''", "done"},
			{"half of a letter in a header", `headers = '{"a": "\ud800"}'`, "done"},
			{"failed for ever", "state = 'failed', due_at = NULL, failed_at = 'infinity', reason = 'lease_lost', resolved_at = '-infinity'", "failed lease_lost"},
			{"done for ever", "state = 'done', due_at = NULL, done_at = 'infinity', lease_id = 1", "done"},
		},
		leases: []string{
			"1, 'a', now(), now(), '1 second', (SELECT array_agg(id) FROM outbox WHERE lease_id = 1)",
			"2, '', {next year}, {last year}, '1 hour', '{}'",
			"3, 'of nothing', now(), now(), '1 second', '{}'",
			"-4, 'of unknown messages', now(), now(), '1 second', '{00000000-0000-0000-0000-000000000000}'",
		},
		refuse: []string{
			"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$",
			`CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW
				WHEN (OLD.type = 'refused' AND OLD.state = 'in_flight') EXECUTE FUNCTION refuse()`,
		},
	}
}

func mysqlOddities() oddities {
	return oddities{
		rows: []oddRow{
			{"from the first day", "created_at = '1000-01-02 00:00:00', due_at = '1000-01-02 00:00:00'", "done"},
			{"from the last day", "created_at = '9999-12-31 23:59:59.999999'", "done"},
			{"expires never", "expires_at = '9999-12-31 23:59:59.999999'", "done"},
			{"expired since ever", "expires_at = '1000-01-02 00:00:00'", "failed expired"},
			{"unknown since the first day", "unknown_since = '1000-01-02 00:00:00'", "done"},
			{"an error and no attempt", "error_class = repeat('x', 32), last_error = repeat('x', 65000)", "done"},
			{"a long result and not done", "result = repeat('🦊', 255)", "done"},
			{"no result at all", "result = ''", "done"},
		},
		leases: []string{
			"1, 'a', {now}, {now}, 1000000, (SELECT concat('[', group_concat(seq), ']') FROM outbox WHERE lease_id = 1)",
			"2, '', {next year}, {last year}, 3600000000, '[]'",
			"3, 'of nothing', {now}, {now}, 1000000, '[]'",
			"-4, 'of unknown messages', {now}, {now}, 1000000, '[9223372036854775807]'",
			`5, 'of no numbers', {now}, {now}, 1000000, '["x", null, 1.5, {}, 1e300]'`,
		},
		refuse: []string{`CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW
			IF OLD.type = 'refused' AND OLD.state = 'in_flight' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF`},
	}
}

func sqliteOddities() oddities {
	return oddities{
		rows: []oddRow{
			{"no version", "schema_version = -9223372036854775808", "done"},
			{"an error and no attempt", "error_class = printf('%3000s', 'x'), last_error = 'a' || char(10) || 'b'", "done"},
			{"a long result and not done", "result = printf('%3000s', 'x')", "done"},
			{"no content type", "content_type = ''", "done"},
			{"a text for a payload", "payload = 'text'", "done"},
			{"half of a letter in a header", `headers = '{"a": "\ud800"}'`, "done"},
		},
		leases: []string{
			"1, 'a', {now}, {now}, 1000000, (SELECT json_group_array(seq) FROM outbox WHERE lease_id = 1)",
			"2, '', {next year}, {last year}, 3600000000, '[]'",
			"3, 'of nothing', {now}, {now}, 1000000, '[]'",
			"-4, 'of unknown messages', {now}, {now}, 1000000, '[9223372036854775807]'",
			`5, 'of no numbers', {now}, {now}, 1000000, '["x", null, 1.5, {}, 1e300]'`,
		},
		refuse: []string{`CREATE TRIGGER refuse BEFORE UPDATE ON outbox WHEN OLD.type = 'refused' AND OLD.state = 'in_flight'
			BEGIN SELECT raise(ABORT, 'no'); END`},
	}
}

// TestRowsEditedByHand: rows and leases in states that no relay makes, as far as the table's constraints let them be. Each
// message goes to the end that it can have, none is lost, and the ordinary ones beside them are sent once.
func TestRowsEditedByHand(t *testing.T) {
	onEngines(t, rowsEditedByHand)
}

func rowsEditedByHand(t *testing.T, e engine) {
	d := e.database(t)
	const neighbours = 200
	d.insert(t, neighbours, "neighbour")
	odd := append(append([]oddRow{}, oddEverywhere...), e.odd.rows...)
	for _, row := range odd {
		d.exec(t, "INSERT INTO outbox (aggregateid, type) VALUES ($1, 'odd')", row.name)
		d.exec(t, "UPDATE outbox SET "+row.set+" WHERE aggregateid = $1", row.name)
	}
	for _, lease := range e.odd.leases {
		d.exec(t, "INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids) VALUES ("+lease+")")
	}
	for _, statement := range e.odd.refuse {
		d.exec(t, statement)
	}
	d.insert(t, 5, "refused")
	d.insert(t, neighbours, "neighbour") // behind them

	r := startRelay(t, e.plainConfig(), d.env())
	d.waitCount(t, patience, 2*neighbours, "SELECT count(*) FROM outbox WHERE type = 'neighbour' AND state = 'done' AND attempts = 1")
	for _, row := range odd {
		eventually(t, patience, func() error {
			got := d.rows(t, "SELECT state, coalesce(reason, '') FROM outbox WHERE aggregateid = $1", row.name)[0]
			if got := strings.TrimSpace(strings.Join(got, " ")); got != row.want {
				return fmt.Errorf("%s: %s, want %s", row.name, got, row.want)
			}
			return nil
		})
	}
	r.waitLog(t, `"msg":"database fault","query":"settle","err":"message `)
	d.exec(t, "DROP TRIGGER refuse {on outbox}")
	d.waitCount(t, patience, 5, "SELECT count(*) FROM outbox WHERE type = 'refused' AND state = 'done' AND attempts = 1")
	if n := strings.Count(r.stdout.String(), `"type":"refused"`); n != 5 {
		t.Errorf("%d sends of 5 messages whose settlement was refused at first", n)
	}
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_lease") // one has an hour to go
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type = 'odd'"); n != len(odd) {
		t.Errorf("%d rows, want %d", n, len(odd))
	}
}
