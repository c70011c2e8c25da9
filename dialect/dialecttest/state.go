package dialecttest

import (
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// ID is the id of a message of the known state by its last digit, 0 to f.
func ID(last string) string { return "00000000-0000-7000-8000-00000000000" + last }

// knownState makes of ten pending messages what the cases look for; the last digit of an id tells which one it is.
const knownState = `
-- 1, 2: due for 10 and 5 minutes; 3: delayed by the application; 4: retrying; 5: no policy
UPDATE outbox SET due_at = {{now "-10m"}} WHERE id = '{{id "1"}}';
UPDATE outbox SET due_at = {{now "-5m"}}, lapses = 1, lease_id = -1 WHERE id = '{{id "2"}}';
UPDATE outbox SET due_at = {{now "60m"}} WHERE id = '{{id "3"}}';
UPDATE outbox SET due_at = {{now "61m"}}, attempts = 1, lease_id = 7, error_class = 'http_5xx', last_error = '503' WHERE id = '{{id "4"}}';
UPDATE outbox SET due_at = {{now "62m"}}, lease_id = 7, error_class = 'no_policy' WHERE id = '{{id "5"}}';
-- 6: in flight under a lease; 7: in flight without one; 8: failed; 9: failed and resolved; a: done
UPDATE outbox SET state = 'in_flight', due_at = {{never}}, lease_id = 6 WHERE id = '{{id "6"}}';
UPDATE outbox SET state = 'in_flight', due_at = {{never}}, lease_id = 77 WHERE id = '{{id "7"}}';
UPDATE outbox SET state = 'failed', due_at = {{never}}, failed_at = {{now "0s"}}, reason = 'rejected', error_class = 'http_4xx', last_error = '422', attempts = 1 WHERE id = '{{id "8"}}';
UPDATE outbox SET state = 'failed', due_at = {{never}}, failed_at = {{now "-1h"}}, reason = 'cancelled', resolved_at = {{now "0s"}} WHERE id = '{{id "9"}}';
UPDATE outbox SET state = 'done', due_at = {{never}}, done_at = {{now "0s"}}, result = '3@17', attempts = 1 WHERE id = '{{id "a"}}';
INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
  VALUES (6, 'r1', {{now "-5m"}}, {{now "-4m"}}, {{duration "30s"}}, {{held "6" "a"}});
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error) VALUES
  ('{{id "4"}}', 0, 1, 'r1', {{now "0s"}}, {{duration "1500ms"}}, 'retry', 503, 'http_5xx', '503'),
  ('{{id "8"}}', 0, 1, 'r1', {{now "0s"}}, {{duration "1s"}}, 'fail', 422, 'http_4xx', '422'),
  ('{{id "4"}}', 1, 1, 'r2', {{now "0s"}}, {{duration "2s"}}, 'lapse', NULL, NULL, NULL);
INSERT INTO outbox_relay (name, host, version, config_hash, destinations, started_at, seen_at) VALUES
  ('r1', 'h1', '0.1.0', 'abc', {{array "[\"kafka\",\"audit\"]"}}, {{now "-1h"}}, {{now "-3s"}}),
  ('r2', 'h2', '0.1.0', 'abd', {{array "[]"}}, {{now "0s"}}, {{now "0s"}});
INSERT INTO outbox_control (kind, name, owner, value) VALUES
  ('breaker', 'kafka', 'r1', '{"state":"ok","width":0,"failures":0,"last_error":""}'),
  ('breaker', 'kafka/orders', 'r1', '{"state":"open","width":0,"failures":5,"last_error":"broker: refused"}'),
  ('breaker', 'hand', 'r2', '{}');
`

// auditState adds to it: b waits for a version to be accepted, c failed before 8 did, and d, e, f are operations.
const auditState = `
INSERT INTO outbox (id, aggregatetype, type, schema_version, created_at, due_at, error_class)
  VALUES ('{{id "b"}}', 'orders', 'sent', 2, {{now "-30m"}}, {{now "-20m"}}, 'no_policy');
INSERT INTO outbox (id, aggregatetype, type, state, due_at, failed_at, reason, error_class, last_error)
  VALUES ('{{id "c"}}', 'orders', 'paid', 'failed', {{never}}, {{now "-10m"}}, 'rejected', 'http_4xx', '400');
UPDATE outbox SET created_at = {{plus "done_at" "-3s"}} WHERE state = 'done';
UPDATE outbox_lease SET claimed_at = {{plus "claimed_at" "30s"}}; -- after 2 was due
-- The lease of 6 also held 7, which another one has now, and a, which is done. Three more are done, after 1, 2 and 60 s.
UPDATE outbox SET lease_id = 6 WHERE state = 'done';
UPDATE outbox_lease SET ids = {{held "6" "a" "7"}};
{{range $took := list "-1s" "-2s" "-60s"}}
INSERT INTO outbox (type, state, due_at, created_at, done_at)
  SELECT 'mail', 'done', {{never}}, {{plus "done_at" $took}}, done_at FROM outbox WHERE id = '{{id "a"}}';
{{end}}
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error)
  VALUES ('{{id "c"}}', 0, 1, 'r1', {{now "0s"}}, {{duration "1s"}}, 'fail', 400, 'http_4xx', '400');
INSERT INTO outbox_control (kind, name) VALUES ('pause', 'everything');
INSERT INTO outbox_operation (id, op, filter, actor, note, dry_run, requested_at, applied_at, affected, detail, applier) VALUES
  ('{{id "d"}}', 'replay', '{"state":"failed"}', 'ann', 'fixed', false, {{now "-20m"}}, {{now "-15m"}}, 3, '{"skipped":{"locked":1}}', 'r1'),
  ('{{id "e"}}', 'pause', '{"all":true}', 'bob', NULL, true, {{now "-40m"}}, NULL, NULL, NULL, NULL),
  ('{{id "f"}}', 'cancel', '{"type":"mail"}', 'ann', NULL, false, {{now "-5m"}}, {{now "-5m"}}, 0, NULL, 'r2');
`

// Fill brings an empty outbox into the state that people's questions are asked about.
func Fill(t *testing.T, b Backend) {
	t.Helper()
	messages := make([]outbox.Message, 0, 10)
	for n := range strings.SplitSeq("123456789", "") {
		messages = append(messages, outbox.Message{ID: ID(n), AggregateType: "orders", AggregateID: n, Type: "paid", Payload: []byte("secret")})
	}
	messages = append(messages, outbox.Message{ID: ID("a"), Type: "mail", Payload: []byte("\x00\xff"), Headers: map[string]string{"a": "b"}})
	if _, err := b.Open().Write(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	execute(t, b, b.Forms().put(t, knownState))
}

// FillForAudits is Fill and what else the audits tell of.
func FillForAudits(t *testing.T, b Backend) {
	t.Helper()
	Fill(t, b)
	execute(t, b, b.Forms().put(t, auditState))
}

// put writes the engine's words into SQL.
func (f Forms) put(t *testing.T, text string) string {
	t.Helper()
	plus := func(at, d string) (string, error) {
		parsed, err := time.ParseDuration(d)
		return f.Plus(at, parsed), err
	}
	words := template.FuncMap{
		"id":    ID,
		"never": func() string { return f.Never },
		"plus":  plus,
		"now":   func(d string) (string, error) { return plus(f.Now, d) },
		"array": f.Array,
		"list":  func(texts ...string) []string { return texts },
		"duration": func(d string) (string, error) {
			parsed, err := time.ParseDuration(d)
			return f.Duration(parsed), err
		},
		"held": func(last ...string) string {
			ids := make([]string, len(last))
			for i := range last {
				ids[i] = ID(last[i])
			}
			return f.Held(ids...)
		},
	}
	parsed, err := template.New("state").Funcs(words).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var sql strings.Builder
	if err := parsed.Execute(&sql, nil); err != nil {
		t.Fatal(err)
	}
	return sql.String()
}
