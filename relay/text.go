package relay

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	maxErrorBytes  = 2048 // last_error
	maxResultBytes = 255  // result
	maxAnswerBytes = 4096 // outbox_attempt.answer
	maxClassBytes  = 32   // error_class
)

// secrets are what an error text of a client library may carry along: the password of a URL, a credential of an
// Authorization header, a value said to be a password, token or secret. "no token: the server …" is no such value.
var secrets = regexp.MustCompile(`(?i)(://[^\s/:@]*:)[^\s@]+(@)` +
	`|(\b(?:bearer|basic)\s+)[\w.~+/=-]+` +
	`|(\b(?:password|passwd)["']?\s*[=:]\s*["']?)[^\s"',;&]+` +
	`|(\b(?:secret|token|api[_-]?key)(?:["']?\s*=\s*["']?|["']?\s*:\s*["']|["']?:))[^\s"',;&]+`)

// clean makes a text that every database can store in limit bytes: valid UTF-8 without NUL, cut at a rune's edge, secrets
// masked. Writing an outcome must never fail because of what a destination said.
func clean(text string, limit int) string {
	if len(text) > 4*limit {
		text = text[:4*limit] // bounds the work on a megabyte of error text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if strings.ContainsAny(text, ":= ") { // else it can hold none, and most results are as short as partition@offset
		text = secrets.ReplaceAllString(text, "${1}${3}${4}${5}***${2}")
	}
	return Cut(text, limit)
}

// Cut is the start of a text, at most limit bytes, and not half a character at its end.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && limit-end < utf8.UTFMax-1 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
