package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// receiving is a receive command under way.
type receiving struct {
	t              *testing.T
	url            string
	stdout, stderr *safeBuffer
	stop           func() int
}

func newReceiving(t *testing.T, env lookup, args ...string) *receiving {
	t.Helper()
	r := &receiving{t: t}
	r.stdout, r.stderr, r.stop = start(t, env, append([]string{"receive", "--listen", "127.0.0.1:0"}, args...)...)
	eventually(t, "it listens", func() bool {
		r.url = regexp.MustCompile(`http://[0-9.:]+/`).FindString(r.stderr.String())
		return r.url != ""
	})
	return r
}

// post sends one request, and gives the status of its answer. It may be called beside the test.
func (r *receiving) post(key, body string, header ...string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return 0
	}
	req.Header.Set("Idempotency-Key", key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		r.t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// ended is its exit code, and the balance: the last line of its output.
func (r *receiving) ended() (code int, balance string) {
	code = r.stop()
	return code, lastLine(r.stdout.String())
}

// TestReceive walks one receiver through good requests and bad ones to its balance.
func TestReceive(t *testing.T) {
	t.Parallel()
	secrets := write(t, t.TempDir(), "secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n")
	r := newReceiving(t, environment(), "--status", "201", "--expect", "2")
	for key, want := range map[string]int{"a": 201, "b": 201} {
		for range 2 {
			if got := r.post(key, `{"card":"4111"}`); got != want {
				t.Errorf("%s: %d", key, got)
			}
		}
	}
	const balance = "requests 4 · effects 2 · repeats dropped 2 · failed on demand 0 · refused 0 · bad signatures 0 · doubled 0"
	if code, got := r.ended(); code != exitOK || got != balance || strings.Contains(r.stdout.String(), "4111") {
		t.Errorf("exit %d: %s: %s", code, r.stdout.String(), r.stderr.String())
	}
	r = newReceiving(t, environment(), "--secret-file", secrets)
	if got := r.post("a", "{}"); got != http.StatusUnauthorized {
		t.Errorf("unsigned: %d", got)
	}
	if code, got := r.ended(); code != exitOK || !strings.Contains(got, "effects 0") || !strings.Contains(got, "bad signatures 1") {
		t.Errorf("exit %d: %s", code, got)
	}
}

// TestReceiveBalance holds that the exit code tells what is missing and what was done twice.
func TestReceiveBalance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, keys string
		code       int
		words      string
	}{
		"as expected": {"--expect 2", "a b a", exitOK, ""},
		"missing":     {"--expect 3", "a b a", exitUnexpected, "1 of the 3 effects that were expected are missing"},
		"too many":    {"--expect 1", "a b a", exitUnexpected, "there are 2 effects, and 1 were expected"},
		"doubled":     {"--remember 0", "a b a", exitUnexpected, "the work was done more than once for this many keys: 1"},
		"forgotten":   {"--max-keys 1", "a b c", exitOK, "2 keys were forgotten"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiving(t, environment(), strings.Fields(c.args)...)
			for key := range strings.FieldsSeq(c.keys) {
				r.post(key, "{}")
			}
			if code, _ := r.ended(); code != c.code || !strings.Contains(r.stderr.String(), c.words) {
				t.Errorf("exit %d: %s", code, r.stderr.String())
			}
		})
	}
}

// TestReceiveCount holds that it ends by itself, after the answer to the last effect.
func TestReceiveCount(t *testing.T) {
	t.Parallel()
	r := newReceiving(t, environment(), "--count", "2")
	for _, key := range []string{"a", "a", "b"} {
		if got := r.post(key, "{}"); got != http.StatusOK {
			t.Errorf("%s: %d", key, got)
		}
	}
	eventually(t, "it ends", func() bool { return strings.Contains(r.stdout.String(), "requests 3 · effects 2") })
	if code := r.stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// TestReceiveAtWork holds that work which is under way at the end is finished and counted.
func TestReceiveAtWork(t *testing.T) {
	t.Parallel()
	r := newReceiving(t, environment(), "--latency", "1h")
	answered := make(chan int, 1)
	go func() { answered <- r.post("a", "{}") }()
	eventually(t, "it is at work", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "running")
	})
	if code, balance := r.ended(); code != exitOK || !strings.Contains(balance, "effects 1") {
		t.Errorf("exit %d: %s", code, balance)
	}
	if status := <-answered; status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
}

// TestReceiveStopped holds that a signal brings the balance, and not the signal's exit code.
func TestReceiveStopped(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd, lines := child(t, os.Environ(), "receive", "--listen", "127.0.0.1:0")
		wait(t, lines, "listening on")
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", signal, err)
		}
	}
}

func TestReceiveMistakes(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	noSecret := write(t, t.TempDir(), "secret", "hunter2\n")
	taken := newReceiving(t, environment())
	for args, want := range map[string]string{
		"--status 99":               "outboxd: --status wants 200 to 599",
		"--cut never":               "outboxd: --cut wants before or after",
		"--hang=no":                 "outboxd: --hang wants before or after",
		"--latency 5":               "outboxd: --latency: wants a duration with its unit",
		"--fail -1":                 "outboxd: --fail, --count and --expect want 0 or more",
		"--fail-rate 2":             "outboxd: --fail-rate wants 0 to 1, such as 0.1",
		"--max-keys 0":              "outboxd: --remember wants 0 or more, --max-keys 1 or more",
		"--to billing":              "outboxd: --to goes with --db",
		"--secret-file " + none:     "outboxd: --secret-file: cannot read " + none + ": no such file or directory",
		"--secret-file " + noSecret: "outboxd: --secret-file: " + noSecret + ": secret 1 is not whsec_ and 24 to 64 bytes in base64",
		"--bearer-file " + none:     "outboxd: --bearer-file: cannot read " + none + ": no such file or directory",
		"--db --to billing":         `outboxd: --to: the configuration has no destination "billing"`,
		"--listen " + taken.url[7:len(taken.url)-1]: "outboxd: --listen: the address " + taken.url[7:len(taken.url)-1] + " cannot be had: bind: address already in use",
	} {
		code, stdout, stderr := cli(t, environment(), append([]string{"receive"}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
	if code, _, stderr := cli(t, environment(), "receive", "--db"); code != exitConfiguration || !strings.Contains(stderr, "no database") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// executed is an outbox on SQLite whose charges go to a receiver, and all else to the screen.
type executed struct {
	t   *testing.T
	dir string
	env lookup
}

func newExecuted(t *testing.T) *executed {
	t.Helper()
	e := &executed{t: t, dir: t.TempDir()}
	e.env = environment(envDatabase+"=sqlite://"+filepath.ToSlash(filepath.Join(e.dir, "shop.db")), "OUTBOXD_LISTEN=off")
	e.command("migrate", "up")
	return e
}

// command runs one command that has to end well, and gives what it printed.
func (e *executed) command(args ...string) string {
	e.t.Helper()
	code, stdout, stderr := cli(e.t, e.env, args...)
	if code != exitOK {
		e.t.Fatalf("%q: exit %d: %s", args, code, stderr)
	}
	return strings.TrimSpace(stdout)
}

func (e *executed) config(url string) string {
	e.t.Helper()
	return write(e.t, e.t.TempDir(), "outboxd.yaml", fmt.Sprintf(`
destinations:
  billing: {webhook: {url: %q, dedupe: 24h}}
  screen: {stdout: {}}
routes:
  - {match: charges, to: billing, ordered: false, base: 10ms}
  - {match: "*", to: screen}
`, url))
}

// receiver compares with the charges; its own address is not in its configuration.
func (e *executed) receiver(args ...string) *receiving {
	e.t.Helper()
	return newReceiving(e.t, e.env, append([]string{"--db", "--to", "billing", "-c", e.config("http://127.0.0.1/")}, args...)...)
}

// relayTo runs a relay until so many messages are done.
func (e *executed) relayTo(url string, done int, meanwhile func(config string)) {
	e.t.Helper()
	file := e.config(url)
	_, _, stop := start(e.t, e.env, "run", "-c", file)
	meanwhile(file)
	eventually(e.t, "all is done", func() bool {
		return strings.Count(e.command("list", "--state", "done", "-o", "jsonl"), "\n")+1 == done
	})
	stop()
}

// TestReceiveFromRelay lets a relay execute commands at a receiver that fails at first, and compares with the outbox. A
// second receiver sees only what is replayed under a new key.
func TestReceiveFromRelay(t *testing.T) {
	t.Parallel()
	e := newExecuted(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, e.command("enqueue", "--aggregatetype", "charges", "--type", "charge_order", "--data", fmt.Sprint(i)))
	}
	e.command("enqueue", "--type", "audit")
	first := e.receiver("--fail", "2", "--status", "500")
	e.relayTo(first.url, 4, func(string) {})
	if code, balance := first.ended(); code != exitOK || !strings.Contains(balance, "effects 3 · repeats dropped 0 · failed on demand 2") {
		t.Errorf("exit %d: %s: %s", code, balance, first.stderr.String())
	}

	second := e.receiver()
	e.relayTo(second.url, 4, func(file string) {
		e.command("replay", ids[1], "--state", "done", "--new-key", "--note", "again", "--yes", "--wait", "-c", file)
	})
	eventually(t, "it comes again", func() bool { return strings.Contains(second.stdout.String(), "effect") })
	code, balance := second.ended()
	out := second.stdout.String()
	if code != exitUnexpected || strings.Contains(out, "missing  "+ids[1]) || !strings.Contains(second.stderr.String(), "2 messages had no effect here") {
		t.Errorf("exit %d: %s: %s", code, out, second.stderr.String())
	}
	if want := "missing  " + ids[2] + "  charge_order  done"; !strings.Contains(out, want) || balance == "" {
		t.Errorf("%q is not in %s", want, out)
	}
}

// TestMissingIsWhatIsExpected holds which messages need an effect.
func TestMissingIsWhatIsExpected(t *testing.T) {
	t.Parallel()
	routes := []routeConfig{{Match: "charges", To: "billing"}, {Match: "*", To: "screen"}}
	for _, c := range []struct {
		to   string
		m    dialect.Listed
		want bool
	}{
		{"billing", dialect.Listed{RoutingKey: "charges"}, true},
		{"billing", dialect.Listed{RoutingKey: "charges", ResolvedAt: &dialect.Time{}}, false},
		{"billing", dialect.Listed{RoutingKey: "audit"}, false},
		{"", dialect.Listed{RoutingKey: "audit"}, true},
	} {
		if got := (&expectation{routes: routes, to: c.to}).wants(c.m); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if !(&expectation{}).wants(dialect.Listed{RoutingKey: "audit"}) || (&expectation{to: "billing"}).wants(dialect.Listed{RoutingKey: "audit"}) {
		t.Error("without a route, only a comparison with all messages counts it")
	}
}
