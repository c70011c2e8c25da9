package dialect

import (
	"strings"
	"testing"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"no broker":                     "no broker",
		"HTTP 503 Service Unavailable":  "HTTP 503 Service Unavailable",
		"HTTP 422 Unprocessable Entity": "HTTP 422 Unprocessable Entity",
		"HTTP 50312 is no status":       "HTTP … is no status",
		"exit code 3: order 42 unknown": "exit code 3: order … unknown",
		"connection to 10.0.0.3:4432 refused after 12ms":              "connection to … refused after …ms",
		"connection to 10.0.0.17:4433 refused after 1.5ms":            "connection to … refused after …ms",
		"order 0190163d-8694-739b-aea5-966c26f8ad91 is closed":        "order … is closed",
		"order 0190163D-8694-739B-AEA5-966C26F8AD91 is closed":        "order … is closed",
		"at 0xDEADBEEF and 0x1":                                       "at … and …",
		"commit 4bba385f0b is gone":                                   "commit … is gone",
		"effaceable and deadbeef stay, deadbee4 goes":                 "effaceable and deadbeef stay, … goes",
		`column "amount" of 'orders' and ` + "`x y`":                  `column "…" of '…' and ` + "`…`",
		`it said: {"error":"no currency X7","field":"amount","n":17}`: `it said: {"error":"…","field":"…","n":…}`,
		"don't cut me in 2":                                           "don't cut me in …",
		"two\nlines\tand   blanks":                                    "two lines and blanks",
		"2026-01-31T15:04:05.123Z":                                    "…-…-…T…Z",
		"größe 12 überschritten":                                      "größe … überschritten",
		strings.Repeat("é", fingerprintRunes) + "beyond":              strings.Repeat("é", fingerprintRunes),
		"1,000,000 bytes are more than 65536":                         "… bytes are more than …",
		"read tcp 127.0.0.1:5->[::1]:9092: i/o timeout":               "read tcp …->[::…]:…: i/o timeout",
		"bad bytes \xff\xfe are kept as the replacement of Unicode":   "bad bytes \xff\xfe are kept as the replacement of Unicode",
	} {
		got := Fingerprint(text)
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if again := Fingerprint(got); again != got {
			t.Errorf("%q: its fingerprint's own is %q", got, again)
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	for _, seed := range []string{`"`, "'1", "0x", "HTTP 5", `{"a":"b"}`, "…", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Fingerprint(text); len([]rune(got)) > fingerprintRunes+2*strings.Count(got, "…") {
			t.Errorf("%q: %q is longer than what counts of the text", text, got)
		}
	})
}
