package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
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
