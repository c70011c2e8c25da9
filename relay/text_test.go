package relay

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"plain", "connection refused", "connection refused"},
		{"NUL", "a\x00b", "a\uFFFDb"},
		{"invalid UTF-8", "a\xff\xfeb", "a\uFFFDb"},
		{"emoji", "✅ 😀", "✅ 😀"},
		{"password in a URL", "dial amqp://app:s3cr%40t@db:5432/x", "dial amqp://app:***@db:5432/x"},
		{"bearer", "Authorization: Bearer abc.def-123", "Authorization: Bearer ***"},
		{"words", "no token: the token server answered HTTP 503; secret: cannot be read", "no token: the token server answered HTTP 503; secret: cannot be read"},
		{"JSON", `{"token": "abc", "secret":"def","password": "1"}`, `{"token": "***", "secret":"***","password": "***"}`},
		{"key and value", `password=hunter2 api_key: "xyz", token=t`, `password=*** api_key: "***", token=***`},
	} {
		if got := clean(c.text, 200); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("😀😀😀", 5)
	f.Add(strings.Repeat("\xff", 100), 7)
	f.Add("://a:"+strings.Repeat("b", 50)+"@", 10)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<16 {
			t.Skip()
		}
		got := clean(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("clean(%q, %d) = %q", text, limit, got)
		}
	})
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	got, err := parseHeaders(`{"b":"2","a":"\u0031","B":"3"}`)
	if err != nil || len(got) != 3 || got[0] != (Header{"B", "3"}) || got[1] != (Header{"a", "1"}) || got[2] != (Header{"b", "2"}) {
		t.Errorf("%v, %v", got, err)
	}
	for raw, want := range map[string]string{
		`{"n":1}`:           `header "n" is no string`,
		`{"x":null}`:        `header "x" is no string`,
		`{"deep":{"a":[]}}`: `header "deep" is no string`,
		`[]`:                `headers is no JSON object`,
		`{`:                 `headers is no JSON object`,
	} {
		if _, err := parseHeaders(raw); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	for _, raw := range []string{"", "{}", "  {} "} {
		if got, err := parseHeaders(raw); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", raw, got, err)
		}
	}
}
