package integration

import (
	"fmt"
	"strings"
	"testing"
)

// TestRowsEditedByHand: rows in states that no relay makes, as far as the table's constraints let them be. Each goes to the
// end that it can have, none is lost, and the ordinary messages beside them are sent once.
func TestRowsEditedByHand(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const neighbours = 200
	d.insert(t, neighbours, "neighbour")
	odd := []struct{ name, set, want string }{
		{"in flight under no lease", "state = 'in_flight', due_at = NULL", "done"},
		{"in flight under a lease of nobody", "state = 'in_flight', due_at = NULL, lease_id = 4711", "done"},
		{"in flight under a dead lease", "state = 'in_flight', due_at = NULL, lease_id = 1", "done"},
		{"in flight beside a lease that knows nothing of it", "state = 'in_flight', due_at = NULL, lease_id = 2", "in_flight"},
		{"pending under a dead lease", "lease_id = 1", "done"},
		{"a negative lease", "lease_id = -7", "done"},
		{"sent before it was inserted", "created_at = clock_timestamp() + interval '10 years'", "done"},
		{"from the first day", "created_at = '4713-01-01 00:00:00+00 BC', due_at = '4713-01-01 00:00:00+00 BC'", "failed rejected"}, // JSON has no such date
		{"from the last day", "created_at = '294276-12-31 00:00:00+00'", "failed rejected"},
		{"due much later", "due_at = '9999-12-30 00:00:00+00'", "pending"},
		{"expires never", "expires_at = 'infinity'", "done"},
		{"expired since ever", "expires_at = '-infinity'", "failed expired"},
		{"unknown in the future", "unknown_since = clock_timestamp() + interval '1 year'", "done"},
		{"unknown since the first day", "unknown_since = '4713-01-01 00:00:00+00 BC'", "done"},
		{"all attempts used", "attempts = 1000", "done"},
		{"most attempts", "attempts = 2147483647", "done"},
		{"many lapses", "lapses = 1000", "failed lease_lost"},
		{"most lapses, in flight", "lapses = 2147483647, state = 'in_flight', due_at = NULL", "failed lease_lost"},
		{"most replays", "replays = 2147483647", "done"},
		{"the wire key of another", "send_id = (SELECT id FROM outbox WHERE type = 'neighbour' LIMIT 1)", "done"},
		{"no version", "schema_version = -2147483648", "done"},
		{"an error and no attempt", "error_class = repeat('x', 3000), last_error = E'a\\nb'", "done"},
		{"a result and not done", "result = repeat('x', 3000)", "done"},
		{"no content type", "content_type = ''", "done"},
		{"a header that is no text", `headers = '{"a": {"b": 1}}'`, "failed rejected"},
		{"half of a letter in a header", `headers = '{"a": "\ud800"}'`, "done"},
		{"no payload at all", "payload = NULL, payload_bytes = NULL", "done"},
		{"failed for no known cause", "state = 'failed', due_at = NULL, failed_at = 'infinity', reason = 'lease_lost', resolved_at = '-infinity'", "failed lease_lost"},
		{"done without a send", "state = 'done', due_at = NULL, done_at = 'infinity', lease_id = 1", "done"},
	}
	for _, row := range odd {
		d.exec(t, "INSERT INTO outbox (aggregateid, type) VALUES ($1, 'odd')", row.name)
		d.exec(t, "UPDATE outbox SET "+row.set+" WHERE aggregateid = $1", row.name)
	}
	d.exec(t, `INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids) VALUES
		(1, 'a', now(), now(), '1 second', (SELECT array_agg(id) FROM outbox WHERE lease_id = 1)),
		(2, '', now() + interval '1 year', now() - interval '1 year', '1 hour', '{}'),
		(3, 'of nothing', now(), now(), '1 second', '{}'),
		(-4, 'of unknown messages', now(), now(), '1 second', '{00000000-0000-0000-0000-000000000000}')`)
	d.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`)
	d.exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW
		WHEN (OLD.type = 'refused' AND OLD.state = 'in_flight') EXECUTE FUNCTION refuse()`)
	d.insert(t, 5, "refused")
	d.insert(t, neighbours, "neighbour") // behind them

	r := startRelay(t, plainConfig, []string{"OUTBOXD_DATABASE_URL=" + d.url})
	d.waitCount(t, patience, 2*neighbours, "SELECT count(*) FROM outbox WHERE type = 'neighbour' AND state = 'done' AND attempts = 1")
	for _, row := range odd {
		eventually(t, patience, func() error {
			var got string
			d.read(t, "SELECT concat_ws(' ', state, reason) FROM outbox WHERE aggregateid = '"+row.name+"'", &got)
			if got != row.want {
				return fmt.Errorf("%s: %s, want %s", row.name, got, row.want)
			}
			return nil
		})
	}
	r.waitLog(t, `"msg":"database fault","query":"settle","err":"message `)
	d.exec(t, "DROP TRIGGER refuse ON outbox")
	d.waitCount(t, patience, 5, "SELECT count(*) FROM outbox WHERE type = 'refused' AND state = 'done' AND attempts = 1")
	if n := strings.Count(r.stdout.String(), `"type":"refused"`); n != 5 {
		t.Errorf("%d sends of 5 messages whose settlement was refused at first", n)
	}
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_lease") // the one that an hour has to pass for
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type = 'odd'"); n != len(odd) {
		t.Errorf("%d rows, want %d", n, len(odd))
	}
}
