package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// drilled is an outbox whose messages went to a receiver.
type drilled struct {
	t    *testing.T
	env  lookup
	file string
	*receiving
}

// newDrilled sends so many messages to a receiver that is started with args.
func newDrilled(t *testing.T, messages int, webhook string, args ...string) *drilled {
	t.Helper()
	d := &drilled{t: t, env: sqliteOutbox(t)}
	d.receiving = newReceiving(t, d.env, args...)
	d.file = write(t, t.TempDir(), "outboxd.yaml", fmt.Sprintf(
		"destinations:\n  billing: {webhook: {url: %q, %s}}\nroutes:\n  - {match: charge_order, to: billing, ordered: false}\n", d.url, webhook))
	for n := range messages {
		if code, _, stderr := cli(t, d.env, "enqueue", "--type", "charge_order", "--data", fmt.Sprintf(`{"order":%d}`, n), "--header", "tenant=7"); code != exitOK {
			t.Fatalf("enqueue: exit %d: %s", code, stderr)
		}
	}
	if code, _, stderr := cli(t, d.env, "run", "--once", "--config", d.file); code != exitOK {
		t.Fatalf("run: exit %d: %s", code, stderr)
	}
	return d
}

// drill runs the command, and gives the verdicts.
func (d *drilled) drill(args ...string) (code int, verdicts []string, stderr string) {
	d.t.Helper()
	code, stdout, stderr := cli(d.t, d.env, append([]string{"drill", "--config", d.file, "--destination", "billing", "--yes", "-o", "jsonl"}, args...)...)
	for line := range strings.Lines(stdout) {
		var c comparison
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			d.t.Fatal(err, stdout)
		}
		verdicts = append(verdicts, c.Verdict)
	}
	return code, verdicts, stderr
}

// recorded is the last drill in the log of operations.
func (d *drilled) recorded() (told dialect.Drill) {
	d.t.Helper()
	_, stdout, _ := cli(d.t, d.env, "operations", "-o", "json")
	var found []dialect.Operation
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || len(found) == 0 {
		d.t.Fatal(err, stdout)
	}
	told, ok := found[0].Drill()
	if !ok || found[0].Actor == "" {
		d.t.Fatalf("the last operation is %+v", found[0])
	}
	return told
}

// TestDrill holds that a receiver which remembers its keys passes, and that its messages stay as they are.
func TestDrill(t *testing.T) {
	t.Parallel()
	d := newDrilled(t, 3, "dedupe: 24h")
	_, before, _ := cli(t, d.env, "list", "-o", "json")
	code, verdicts, stderr := d.drill("--count", "2", "--note", "release 7")
	if code != exitOK || !slices.Equal(verdicts, []string{agrees, agrees}) || !strings.Contains(stderr, "DOES THE WORK TWICE") ||
		!strings.HasSuffix(stderr, "sent again 2 · agree 2 · differ 0 · unanswered 0\n") {
		t.Errorf("exit %d, %v: %s", code, verdicts, stderr)
	}
	if _, after, _ := cli(t, d.env, "list", "-o", "json"); after != before {
		t.Errorf("the messages were\n%s\nand are\n%s", before, after)
	}
	if told := d.recorded(); told != (dialect.Drill{Destination: "billing", Sent: 2, Agreed: 2}) {
		t.Errorf("recorded: %+v", told)
	}
	if code, verdicts, stderr := d.drill("--since", "1ns"); code != exitNoMatch || len(verdicts) != 0 {
		t.Errorf("nothing so new: exit %d, %v: %s", code, verdicts, stderr)
	}
	if code, balance := d.ended(); code != exitOK || !strings.HasPrefix(balance, "requests 5 · effects 3 · repeats dropped 2") {
		t.Errorf("the receiver: exit %d, %s", code, balance)
	}
}

// TestDrillFindsWhoChargesTwice is what the drill is for.
func TestDrillFindsWhoChargesTwice(t *testing.T) {
	t.Parallel()
	d := newDrilled(t, 3, "dedupe: 24h", "--remember", "0")
	code, verdicts, stderr := d.drill()
	if code != exitUnexpected || !slices.Equal(verdicts, []string{differs, differs, differs}) || !strings.Contains(stderr, "3 of 3 repeats were not answered as the first send was") {
		t.Errorf("exit %d, %v: %s", code, verdicts, stderr)
	}
	if told := d.recorded(); told != (dialect.Drill{Destination: "billing", Sent: 3, Differed: 3}) {
		t.Errorf("recorded: %+v", told)
	}
	if code, balance := d.ended(); code != exitUnexpected || !strings.Contains(balance, "doubled 3") {
		t.Errorf("the receiver: exit %d, %s", code, balance)
	}
	if code, verdicts, stderr := d.drill(); code != exitDestination || len(verdicts) != 0 {
		t.Errorf("nobody listens: exit %d, %v: %s", code, verdicts, stderr)
	}
}

// TestDrillRefuses holds what is not sent: where nobody says yes, where it can show nothing, where it is paused.
func TestDrillRefuses(t *testing.T) {
	t.Parallel()
	d := newDrilled(t, 1, "dedupe: 24h")
	other := write(t, t.TempDir(), "other.yaml", `
destinations:
  events: {kafka: {brokers: ["127.0.0.1:1"], topic: t}}
  screen: {stdout: {}}
  never: {webhook: {url: "http://127.0.0.1:1/", dedupe: never}}
routes:
  - {match: "*", to: never, ordered: false}
`)
	for args, want := range map[string]struct {
		code  int
		words string
	}{
		"--destination billing":                        {exitUsage, "nobody is there to be asked: add --yes"},
		"--destination billing --yes --count 0":        {exitUsage, "--count wants 1 to 1000"},
		"--yes":                                        {exitUsage, "drill needs --destination"},
		"--destination bling --yes":                    {exitNotFound, `no destination "bling"`},
		"--destination events --yes -c " + other:       {exitUsage, "keeps no answer"},
		"--destination screen --yes -c " + other:       {exitUsage, "answers nothing"},
		"--destination never --yes -c " + other:        {exitUsage, "dedupe: never"},
		"--destination billing --yes --since 0s":       {exitUsage, "--since wants"},
		"--destination billing --yes --output picture": {exitUsage, "-o wants"},
	} {
		if !strings.Contains(args, " -c ") {
			args += " -c " + d.file
		}
		code, stdout, stderr := cli(t, d.env, append([]string{"drill"}, strings.Fields(args)...)...)
		if code != want.code || stdout != "" || !strings.Contains(stderr, want.words) {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	if code, _, stderr := cli(t, d.env, "pause", "billing", "--indefinitely", "--yes"); code != exitOK {
		t.Fatalf("pause: exit %d: %s", code, stderr)
	}
	if code, _, stderr := cli(t, d.env, "run", "--once", "-c", d.file); code != exitOK {
		t.Fatalf("run: exit %d: %s", code, stderr)
	}
	if code, _, stderr := d.drill(); code != exitNotAllowed || !strings.Contains(stderr, "destination billing is paused") {
		t.Errorf("a paused destination: exit %d: %s", code, stderr)
	}
	if code, balance := d.ended(); code != exitOK || !strings.HasPrefix(balance, "requests 1 ") {
		t.Errorf("the receiver: exit %d, %s", code, balance)
	}
}

// TestDrillHoldsBack: what relays may not send, since it is paused or the outbox is another instance's, no drill sends.
func TestDrillHoldsBack(t *testing.T) {
	t.Parallel()
	d := newDrilled(t, 1, "dedupe: 24h")
	run := func(args ...string) {
		t.Helper()
		if code, _, stderr := cli(t, d.env, args...); code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
	}
	for _, target := range [][]string{{"--routing-key", "charge_order"}, {"--type", "charge_order"}, {"--type", "charge_order", "--schema-version", "1"}} {
		run(append([]string{"pause", "--indefinitely", "--yes"}, target...)...)
		run("run", "--once", "-c", d.file)
		if code, _, stderr := d.drill(); code != exitNoMatch || !strings.Contains(stderr, "left out 1 message whose routing key, type or version is paused") {
			t.Errorf("%v is paused: exit %d: %s", target, code, stderr)
		}
		run(append([]string{"resume", "--yes"}, target...)...)
		run("run", "--once", "-c", d.file)
	}
	run("instance", "set", "production", "--yes", "--note", "a copy of it")
	if code, _, stderr := d.drill(); code != exitNotAllowed || !strings.Contains(stderr, "the outbox belongs to production, and this configuration to none") {
		t.Errorf("a copy: exit %d: %s", code, stderr)
	}
	if code, balance := d.ended(); code != exitOK || !strings.HasPrefix(balance, "requests 1 ") {
		t.Errorf("the receiver: exit %d, %s", code, balance)
	}
}

func TestCompareAnswers(t *testing.T) {
	t.Parallel()
	long := func(result, answer string, status int) relay.Outcome {
		return relay.Outcome{Kind: relay.KindDone, Result: result, Answer: answer, Status: status}
	}
	first := sentOnce{result: "ch_1"}
	kept := sentOnce{result: "ch_1", answer: `{"id":"ch_1"}`, status: 201}
	for name, c := range map[string]struct {
		m    sentOnce
		now  relay.Outcome
		want string
	}{
		"the same reference":         {first, long("ch_1", "", 200), agrees},
		"another reference":          {first, long("ch_2", "", 200), differs},
		"the same answer":            {kept, long("ch_1", `{"id":"ch_1"}`, 201), agrees},
		"another answer":             {kept, long("ch_1", `{"id":"ch_2"}`, 201), differs},
		"another status":             {kept, long("ch_1", `{"id":"ch_1"}`, 200), differs},
		"nothing said at all":        {sentOnce{}, long("", "", 204), agrees},
		"refused":                    {first, relay.Fail(relay.Rejected, "http_4xx", "422"), differs},
		"a crash over the second":    {first, relay.Retry("http_5xx", "500"), differs},
		"too many at once":           {first, relay.Retry("throttled", "429"), unanswered},
		"an answer that was lost":    {first, relay.Unknown("timeout", "no answer"), unanswered},
		"a result that is cut alike": {sentOnce{result: strings.Repeat("x", 255)}, long(strings.Repeat("x", 300), "", 200), agrees},
	} {
		if got := c.m.compare(c.now); got.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
