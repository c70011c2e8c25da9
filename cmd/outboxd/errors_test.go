package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// broken makes messages of which sends went wrong: three failed ones of two versions, and two pending ones.
func broken(s *server) {
	s.insert(6, "orders", "order_paid")
	s.exec(`UPDATE ` + s.schema + `.outbox SET state = 'failed', due_at = NULL, failed_at = now(), reason = 'rejected', error_class = 'http_4xx',
		last_error = 'HTTP 422: order ' || seq || ' has no "currency"', schema_version = 1 + seq % 2 WHERE seq <= 3`)
	s.exec(`UPDATE ` + s.schema + `.outbox SET due_at = now() + interval '1 hour', attempts = 2, lease_id = 7, error_class = 'http_5xx',
		last_error = 'HTTP 500' WHERE seq IN (4, 5)`)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	broken(s)
	code, stdout, stderr := cli(t, s.env(), "errors")
	for _, want := range []string{
		"MESSAGES  STATE    ROUTING_KEY  TYPE        VERSIONS  REASON    ERROR_CLASS",
		`3         failed   orders       order_paid  1,2       rejected  http_4xx`,
		`HTTP 422: order … has no "…"`,
		"2         pending  orders       order_paid  1         -         http_5xx",
		"\n3 failed of type order_paid, next:\n  outboxd why ",
		"\n  outboxd replay --state failed --routing-key orders --type order_paid --reason rejected --error-class http_4xx\n",
		"\n  outboxd pause --type order_paid --schema-version 1 --for 30m\n",
	} {
		if code != exitOK || stderr != "" || !strings.Contains(stdout, want) {
			t.Fatalf("exit %d, %s, want %s in\n%s", code, stderr, want, stdout)
		}
	}
	code, stdout, _ = cli(t, s.env(), "errors", "--state", "pending", "-o", "json")
	var got []struct {
		Messages    int
		SampleID    string `json:"sample_id"`
		SampleError string `json:"sample_error"`
		Next        []string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || len(got) != 1 || got[0].Messages != 2 ||
		got[0].SampleError != "HTTP 500" || got[0].Next[0] != "outboxd why "+got[0].SampleID {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
}

// TestErrorsNext holds that what is said to be next is a command line that is taken, for the messages of the group.
func TestErrorsNext(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	broken(s)
	_, stdout, _ := cli(t, s.env(), "errors", "-o", "json")
	var groups []errorRow
	if err := json.Unmarshal([]byte(stdout), &groups); err != nil || len(groups) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	for _, g := range groups {
		for _, command := range g.Next {
			command, note, _ := strings.Cut(strings.Replace(command, "EXPRESSION", ".+{m:1}", 1), ` --note "`)
			args := strings.Fields(command)[1:]
			if args[0] != "why" {
				args = append(args, "--dry-run")
			}
			if note != "" {
				args = append(args, "--note", strings.Trim(note, `"`))
			}
			code, _, stderr := cli(t, s.env(), args...)
			found := map[string]string{"failed": ": 3 messages", "pending": ": 2 messages"}[g.State]
			if args[0] == "correct" {
				found = strings.TrimPrefix(found, ": ")
			}
			if code != exitOK || args[0] != "why" && args[0] != "pause" && !strings.Contains(stderr, found) {
				t.Errorf("%q: exit %d: %s", args, code, stderr)
			}
		}
	}
}

// TestDest holds that messages are found by where the configuration sends them.
func TestDest(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "orders", "order_paid")
	s.insert(2, "mail", "welcome")
	config := t.TempDir() + "/outboxd.yaml"
	writeTo(t, config, []byte(`
destinations:
  shop: {stdout: {}}
  rest: {webhook: {url: "https://h/", dedupe: 1h}}
routes:
  - {match: "ord*", to: shop, ordered: false}
  - {match: "*", to: rest, ordered: false}
`))
	for dest, want := range map[string]int{"shop": 1, "rest": 2} {
		code, stdout, stderr := cli(t, s.env(), "list", "-c", config, "--dest", dest, "-o", "jsonl")
		if code != exitOK || strings.Count(stdout, "\n") != want {
			t.Errorf("%s: exit %d, %s: %s", dest, code, stdout, stderr)
		}
	}
	for _, command := range []string{"list", "errors"} {
		if code, _, stderr := cli(t, s.env(), command, "-c", config, "--dest", "shops"); code != exitUsage || !strings.Contains(stderr, `no destination "shops"`) {
			t.Errorf("%s: exit %d: %s", command, code, stderr)
		}
	}
}

// TestErrorsHarmless: what an application wrote moves no cursor where people read it, and a shell takes the words of the next
// commands for what they are.
func TestErrorsHarmless(t *testing.T) {
	t.Parallel()
	kind := "bad\x1b[2J 'x' \\ é\u202e\nrm -rf"
	for _, group := range []string{kind, "plain", "it's"} {
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+shellWord(group)).Output()
		if err != nil || string(out) != group {
			t.Errorf("%s is read as %q, want %q: %v", shellWord(group), out, group, err)
		}
	}
	s := migrated(t)
	s.insert(3, kind, kind)
	broken := `UPDATE ` + s.schema + `.outbox SET error_class = $1, last_error = $1, attempts = 1`
	s.exec(broken+`, state = 'failed', reason = 'rejected', due_at = NULL, failed_at = now() WHERE seq = 1`, kind)
	s.exec(broken+` WHERE seq = 2`, kind)
	for _, command := range []string{"status", "doctor", "evidence", "errors", "compat", "list", "check"} {
		if _, stdout, stderr := cli(t, s.env(), command); !strings.Contains(stdout+stderr, "rm -rf") && command != "check" ||
			strings.ContainsAny(stdout+stderr, "\x1b\u202e") || strings.Contains(stdout+stderr, "\nrm") {
			t.Errorf("%s: %q%q", command, stdout, stderr)
		}
	}
}
