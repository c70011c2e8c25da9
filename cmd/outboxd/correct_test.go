package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// TestExpression: what an expression makes of a payload. Numbers keep their digits, and what cannot be is named.
func TestExpression(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, old, want, err string }{
		{`.currency = "EUR"`, `{"id": 9007199254740993, "total": 1.10, "currency": null}`, `{"currency":"EUR","id":9007199254740993,"total":1.10}`, ""},
		{`.a = 1`, `{"b":1e400,"c":123456789012345678901234567890,"d":0.1000,"e":-0}`, `{"a":1,"b":1e400,"c":123456789012345678901234567890,"d":0.1000,"e":-0}`, ""},
		{`.n += 1`, `{"n":9007199254740993}`, `{"n":9007199254740994}`, ""},
		{`.n += 1`, `{"n":1.10}`, `{"n":2.1}`, ""},
		{`.total |= tonumber`, `{"total":"1.10"}`, `{"total":1.1}`, ""},
		{`.s`, `{"s":"<&> ä \u2028"}`, "\"<&> ä \u2028\"", ""},
		{`.`, ` { "b": 1.0, "a": [ ] } `, "", "unchanged"},
		{`del(.none)`, `{"a":1}`, "", "unchanged"},
		{`.[]`, `[1,2]`, "", "more than one value"},
		{`empty`, `1`, "", "no value"},
		{`.a.b`, `{"a":"secret"}`, "", "the expression gives an error"},
		{`error("secret")`, `1`, "", "the expression gives an error"},
		{`$ENV.HOME`, `1`, "null", ""},
		{`.`, `{"a":1`, "", "is no JSON"},
		{`.`, ``, "", "is no JSON"},
		{`.`, "\"\xff\"", "", "is no JSON"},
		{`.`, `{} {}`, "", "not one JSON value"},
		{`.b = 1`, `{"a":"\ud83d"}`, "", "surrogate"},
		{`.b = 1`, `{"a":"\ud83d\ude00 \\ud83d \ufffd"}`, `{"a":"😀 \\ud83d ` + "\ufffd" + `","b":1}`, ""},
	} {
		change, err := newExpression(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		got, err := change(t.Context(), []byte(c.old))
		switch {
		case c.err == "" && (err != nil || string(got) != c.want):
			t.Errorf("%s of %s: %s, %v, want %s", c.expression, c.old, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s of %s: %s, %v, want an error: %s", c.expression, c.old, got, err, c.err)
		}
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	const before = `{"a":1,"b":2,"c":3,"d":{"e":"\u001b[2J\u0085"},"x":1,"y":2,"z":3}`
	got := difference([]byte(before), []byte(strings.Replace(before, `"c":3`, `"c":4`, 1)))
	for _, line := range []string{`  -   "c": 3,`, `  +   "c": 4,`, `      "b": 2,`, `      "e": "\u001b[2J\u0085"`} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, `"x"`) || strings.ContainsAny(got, "\x1b\u0085") {
		t.Errorf("the difference is\n%s", got)
	}
	if got := difference([]byte("old"), []byte("{}")); got != "" {
		t.Errorf("of no JSON: %q", got)
	}
	long := "[" + strings.Repeat("1,", 5000) + "1]"
	if got := difference([]byte(long), []byte(strings.ReplaceAll(long, "1", "2"))); strings.Count(got, "\n") != diffLines+1 {
		t.Errorf("of long payloads:\n%s", got)
	}
}

// TestCorrectMany: an expression mends what a filter names; what it makes nothing of stops it, or is left out; who reads
// along sees no payload but on the terminal that was asked.
func TestCorrectMany(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(250, "elsewhere", "order_paid")
	s.exec("UPDATE " + s.schema + ".outbox SET state = 'failed', due_at = NULL, failed_at = now(), attempts = 1, reason = 'exhausted' WHERE seq % 2 = 0")
	s.insert(2, "elsewhere", "other")
	s.exec("UPDATE " + s.schema + ".outbox SET payload = 'secret' WHERE seq = 10")
	s.exec("UPDATE " + s.schema + `.outbox SET payload = NULL, payload_bytes = '{"n":11}' WHERE seq = 11`)
	s.exec("UPDATE " + s.schema + `.outbox SET payload = '{"n":0}' WHERE seq = 12`)
	args := []string{"correct", "--type", "order_paid", "--jq", ".n |= if . > 0 then -. else . end", "--note", "a sign", "--yes"}
	code, stdout, stderr := cli(t, s.env(), args...)
	if code != exitNotAllowed || stdout != "" || !strings.Contains(stderr, ": its payload is no JSON\n") ||
		!strings.Contains(stderr, "outboxd: no new payload for 1 message: mend the expression") || strings.Contains(stderr, "secret") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	if n := s.text("SELECT count(*)::text FROM outbox_correction"); n != "0" {
		t.Fatalf("%s corrections", n)
	}
	args = append(args, "--skip-errors")
	code, _, stderr = cli(t, s.env(), append(args, "--dry-run")...)
	if code != exitOK || strings.Count(stderr, `-   "n": `) != 3 || !strings.Contains(stderr, "dry run: correct: 248 messages (left as they are: 1 erroneous, 1 unchanged)\n") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	start(t, s.env(), "run")
	eventually(t, "the relay is alive", func() bool { return s.relays() == 1 })
	code, _, stderr = cli(t, s.env(), append(args, "--wait")...)
	if code != exitOK || !strings.HasSuffix(stderr, "correct: 248 messages (left as they are: 1 erroneous, 1 unchanged)\napplied: 248 messages\n") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if n := s.count(`payload LIKE '{"n":-%}' AND state = 'pending' AND type = 'order_paid'`); n != 248 {
		t.Errorf("%d messages are corrected", n)
	}
	if n := s.text(`SELECT count(*)::text FROM outbox_correction c JOIN outbox o USING (id) WHERE o.seq = 11 AND c.old_payload_bytes = '{"n":11}' AND c.old_payload IS NULL`); n != "2" {
		t.Errorf("the old payload of bytes is kept %s times", n)
	}
}

// TestCorrectChanged: what changed after it was counted is not overwritten, whoever notices it.
func TestCorrectChanged(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(3, "elsewhere", "order_paid")
	ids := strings.Fields(s.text("SELECT string_agg(id::text, ' ' ORDER BY seq) FROM outbox"))
	file := write(t, t.TempDir(), "payload", "mended")
	if code, _, stderr := cli(t, s.env(), "correct", ids[0], "--payload-file", file, "--note", "mended", "--yes"); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	s.exec("UPDATE " + s.schema + ".outbox SET payload = 'mended by somebody else' WHERE seq = 1")
	start(t, s.env(), "run")
	eventually(t, "it is applied", func() bool {
		return s.text("SELECT count(*)::text FROM outbox_operation WHERE applied_at IS NOT NULL AND op = 'correct'") == "1"
	})
	if got := s.text("SELECT payload FROM outbox WHERE seq = 1"); got != "mended by somebody else" {
		t.Errorf("the payload is %s", got)
	}
	if got := s.text("SELECT detail FROM outbox_operation WHERE op = 'correct'"); got != `{"skipped":{"changed":1}}` {
		t.Errorf("the operation tells %s", got)
	}
	code, _, stderr := cli(t, s.env(), "correct", ids[1], "--payload-file", write(t, t.TempDir(), "same", `{"n":2}`), "--note", "mended", "--yes")
	if code != exitOK || stderr != "correct: no messages (left as they are: 1 unchanged): nothing was asked for\n" {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestProgress: lines where no person watches, and not many.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &program{stderr: &out}
	g := p.newProgress("applied so far", 10)
	g.at(3)
	g.said = g.said.Add(-progressEvery)
	g.at(0)
	g.at(4)
	g.at(5)
	g.end()
	if got := out.String(); got != "applied so far: 4 of 10 messages\n" {
		t.Errorf("said %q", got)
	}
}

// fakeTable is a table of one message, whose payload may change from one look to the next.
type fakeTable struct {
	payloads  []string
	corrected []dialect.Correction
}

func (f *fakeTable) Correctable(_ context.Context, _ relay.Operation, _ relay.State, _ []string) ([]dialect.Correctable, []string, error) {
	return []dialect.Correctable{{Payload: dialect.Payload{ID: "m1"}}}, nil, nil
}

func (f *fakeTable) Payloads(_ context.Context, of []dialect.Payload) (found []dialect.Payload, err error) {
	if len(of) > 0 {
		found = []dialect.Payload{{ID: "m1", Text: []byte(f.payloads[0])}}
		f.payloads = f.payloads[1:]
	}
	return found, nil
}

func (f *fakeTable) Correct(_ context.Context, _ string, corrections []dialect.Correction) error {
	f.corrected = append(f.corrected, corrections...)
	return nil
}

// TestCorrectReadAgain: what was counted is read again before it is corrected, and left out where it is not the same any more.
func TestCorrectReadAgain(t *testing.T) {
	t.Parallel()
	for second, want := range map[string]int{`{"n":1}`: 1, `{"n":2}`: 0} {
		change, err := newExpression(".n = 3")
		if err != nil {
			t.Fatal(err)
		}
		table := &fakeTable{payloads: []string{`{"n":1}`, second}}
		p := &program{stderr: io.Discard}
		r := request{Operation: relay.Operation{Op: relay.OpCorrect}, correcting: &correcting{change: change}, yes: true}
		found, err := p.lookAtPayloads(t.Context(), table, r)
		if err != nil || found.Affected != 1 {
			t.Fatalf("counted %+v, %v", found, err)
		}
		if err := p.writeCorrections(t.Context(), table, &r); (err == nil) != (want == 1) || len(table.corrected) != want {
			t.Errorf("of a payload that is %s now: %v, %v", second, table.corrected, err)
		}
	}
}
