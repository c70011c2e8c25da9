package program

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/outboxd/outboxd/relay"
)

// told puts what a program wrote, in pieces of any size, into an outcome.
func told(s *relay.Secrets, o relay.Outcome, stdout, stderr string) relay.Outcome {
	out := newOutput(s)
	for rest := []byte(stdout); len(rest) > 0; {
		n, _ := out.stdout.Write(rest[:rand.N(len(rest))+1])
		rest = rest[n:]
	}
	for rest := []byte(stderr); len(rest) > 0; {
		n, _ := out.stderr.Write(rest[:rand.N(len(rest))+1])
		rest = rest[n:]
	}
	out.add(&o)
	return o
}

func TestOutput(t *testing.T) {
	t.Parallel()
	done, retry := relay.Done(""), relay.Retry(classProgram, "exit code 1")
	long, umlauts := strings.Repeat("0123456789", 1000), strings.Repeat("ü", 5000)
	for name, c := range map[string]struct {
		outcome                relay.Outcome
		stdout, stderr         string
		result, answer, errors string
	}{
		"nothing":                  {done, "", "", "", "", ""},
		"a reference":              {done, "ch_1\n", "", "ch_1", "", ""},
		"without a line end":       {done, "ch_1", "warning\n", "ch_1", "", ""},
		"of Windows":               {done, "ch_1\r\nmore\r\n", "", "ch_1", "ch_1\nmore\n", ""},
		"two lines":                {done, "ch_1\nmore\n", "", "ch_1", "ch_1\nmore\n", ""},
		"an empty first line":      {done, "\nmore\n", "", "", "\nmore\n", ""},
		"a long line":              {done, long, "", long[:255], long[:4096], ""},
		"cut at a rune":            {done, umlauts, "", umlauts[:254], umlauts[:4096], ""},
		"cut at a rune, shifted":   {done, "x" + umlauts, "", ("x" + umlauts)[:255], ("x" + umlauts)[:4095], ""},
		"no UTF-8, and NUL":        {done, "a\xffb\x00c\xfe\xfed", "", "a\uFFFDb\uFFFDc\uFFFDd", "", ""},
		"half a rune at the end":   {done, "a\xc3", "", "a\uFFFD", "", ""},
		"not done":                 {retry, "half\n", "", "", "half\n", "exit code 1"},
		"an error":                 {retry, "", "no such order\n", "", "", "exit code 1: no such order"},
		"a traceback":              {retry, "", "\nTraceback:\r\n  line 3\r\nValueError: x\r\n\r\n", "", "", "exit code 1: ValueError: x\nTraceback:\n  line 3"},
		"a long error":             {retry, "", long, "", "", "exit code 1: " + long[len(long)-2048+len("exit code 1: \n"):]},
		"an error cut at a rune":   {retry, "", umlauts + "!", "", "", "exit code 1: " + strings.Repeat("ü", 1016) + "!"},
		"an error without meaning": {retry, "", "\xff\x00", "", "", "exit code 1: \uFFFD\uFFFD"},
	} {
		o := told(secretsOf(nil), c.outcome, c.stdout, c.stderr)
		if o.Result != c.result || o.Answer != c.answer || o.Err != c.errors {
			t.Errorf("%s: result %q\nanswer %q\nerror %q", name, o.Result, o.Answer, o.Err)
		}
	}
}

// TestOutputSecrets holds that no part of a secret is told, wherever it stands and however it is written.
func TestOutputSecrets(t *testing.T) {
	t.Parallel()
	secret := `s3"cr%t` + "\n" + strings.Repeat("k", 50)
	s := secretsOf(map[string]string{"KEY": secret, "LONGER": secret + "tail", "EIGHT": "eight888", "SHORT": "live_17", "EMPTY": ""})
	for _, form := range []string{secret, secret + "tail", `s3\"cr%t\n` + strings.Repeat("k", 50), "s3%22cr%25t%0A" + strings.Repeat("k", 50)} {
		for _, before := range []int{0, 1, 200, 250, 254, 1990, 2040, 4000, 4050, 4095, 4096, 5000} {
			text := strings.Repeat("x", before) + form + strings.Repeat("y", 5000-before)
			for _, o := range []relay.Outcome{told(s, relay.Done(""), text, text), told(s, relay.Retry(classProgram, "exit code 1"), text, text)} {
				for _, shown := range []string{o.Result, o.Answer, o.Err} {
					if strings.Contains(shown, "kk") || strings.Contains(shown, "s3") || strings.Contains(shown, "tail") {
						t.Fatalf("%q behind %d bytes shows in %q", form, before, shown)
					}
				}
			}
		}
	}
	if o := told(s, relay.Done(""), "ch_live_17 "+secret+" eight888", ""); o.Result != "ch_live_17 <secret> <secret>" {
		t.Errorf("%+v", o)
	}
}

// FuzzOutput holds that what is told is what a database can store, and no more than is kept.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("ch_1\n"), []byte("a secret oops\n"))
	f.Add([]byte("\xc3\x00\xff"), bytes.Repeat([]byte("\xf0\x9f\x98\x80\n"), 900))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		s := secretsOf(map[string]string{"KEY": "a secret"})
		for _, o := range []relay.Outcome{told(s, relay.Done(""), string(stdout), string(stderr)), told(s, relay.Unknown(classProgram, "x"), string(stdout), string(stderr))} {
			for limit, text := range map[int]string{maxResultBytes: o.Result, maxAnswerBytes: o.Answer, maxErrorBytes: o.Err} {
				if len(text) > limit || !utf8.ValidString(text) || strings.Contains(text, "\x00") || strings.Contains(text, "a secret") {
					t.Errorf("%q", text)
				}
			}
		}
	})
}

// TestTail holds the end of what was written, against all of it.
func TestTail(t *testing.T) {
	t.Parallel()
	for range 1000 {
		end, all := tail{limit: rand.N(20) + 1}, []byte(nil)
		for range rand.N(10) {
			p := bytes.Repeat([]byte{byte('a' + rand.N(26))}, rand.N(30))
			_, _ = end.Write(p)
			all = append(all, p...)
		}
		if want := all[max(0, len(all)-end.limit):]; !slices.Equal(end.text, want) || end.cut != (len(all) > end.limit) {
			t.Fatalf("%q of %q, %d bytes", end.text, all, end.limit)
		}
	}
}
