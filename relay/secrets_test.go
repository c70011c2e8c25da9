package relay_test

import (
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// TestSecrets holds that a secret is masked however it is written, that short values mask nothing, and that of two secrets
// the longer one goes first.
func TestSecrets(t *testing.T) {
	t.Parallel()
	var none relay.Secrets
	if got := none.Hide("secret"); got != "secret" || none.Longest() != 0 || none.TrimEnd("a") != "a" || none.TrimStart("") != "" {
		t.Errorf("%q", got)
	}
	var s relay.Secrets
	s.Add("abc", "secret", "secret-and-more")
	more := s.Clone()
	more.Add("pa/ss \"word\"")
	for text, want := range map[string]string{
		"abc secret secret-and-more":        "abc <secret> <secret>",
		"secretsecret":                      "<secret><secret>",
		"":                                  "",
		`x pa/ss "word" y`:                  "x <secret> y",
		`{"a":"pa/ss \"word\""}`:            `{"a":"<secret>"}`,
		`{"a":"pa\/ss \"word\""}`:           `{"a":"<secret>"}`,
		"?a=pa%2Fss+%22word%22&b=1":         "?a=<secret>&b=1",
		"/pa%2Fss%20%22word%22/pa%2Fss%20x": "/<secret>/pa%2Fss%20x",
	} {
		if got := more.Hide(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := s.Hide("pa/ss \"word\""); strings.Contains(got, "<") {
		t.Errorf("what is added to a clone is hidden by the first: %s", got)
	}
	if s.Longest() != len("secret-and-more") {
		t.Error(s.Longest())
	}
}

// TestTrim holds that of a secret in which a text was cut nothing is left, and all of the rest.
func TestTrim(t *testing.T) {
	t.Parallel()
	var s relay.Secrets
	s.Add("hun2xhun") // its end is its start
	for n := range len("hun2xhun") {
		if got := s.TrimEnd("start " + "hun2xhun"[:n]); got != "start " {
			t.Errorf("%d bytes of its start: %q", n, got)
		}
		if got := s.TrimStart("hun2xhun"[n+1:] + " end"); got != " end" {
			t.Errorf("%d bytes of its end: %q", 7-n, got)
		}
	}
	if got := s.TrimStart(s.TrimEnd("huge nun")); got != "huge nun" {
		t.Errorf("%q", got)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 5, ""},
		{"hello", 5, "hello"},
		{"hello!", 5, "hello"},
		{"hellö!", 5, "hell"},
		{"hel😀", 5, "hel"},
		{"h😀lo", 5, "h😀"},
		{"ö", 0, ""},
		{"ö", 1, ""},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80"},
	} {
		if got := relay.Cut(c.text, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

// TestSecretsBlanks holds that a secret with a line end, as it is in many a file, is masked where its reader took that off.
func TestSecretsBlanks(t *testing.T) {
	t.Parallel()
	var s relay.Secrets
	s.Add("sk_live_hunter2\n")
	if got := s.Hide("bad key sk_live_hunter2"); got != "bad key <secret>" {
		t.Error(got)
	}
}
