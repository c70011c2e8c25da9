package dialect

import (
	"regexp"
	"strings"
)

// fingerprintRunes is how much of an error text tells its kind.
const fingerprintRunes = 200

// telling are, in this order: what stays, since it is the kind of an error (an HTTP status, an exit code, a field of JSON);
// quoted strings; UUIDs; hexadecimal numbers, alone if they have eight digits and more; numbers with what a dot, a comma or
// a colon joins, such as an address with its port or a time of day.
var telling = regexp.MustCompile(`(\b(?:HTTP|exit code|exit status) [0-9]{1,3}\b|"[a-z_]+" ?:)` +
	`|("[^"]*"|'[^']*'|` + "`[^`]*`)" +
	`|(?i:\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}\b)` +
	`|[0-9]+(?:[.:,][0-9]+)*`)

// Fingerprint is an error text with … for all that differs between errors of one kind, so that they can be counted together:
// "connection to 10.0.0.3:4432 refused after 12ms" is "connection to … refused after …ms". Of the text its first 200
// characters count; blanks and line feeds are one blank. It is pure.
func Fingerprint(text string) string {
	if runes := []rune(text); len(runes) > fingerprintRunes {
		text = string(runes[:fingerprintRunes])
	}
	text = strings.Join(strings.Fields(text), " ")
	var out strings.Builder
	from := 0
	for _, m := range telling.FindAllStringSubmatchIndex(text, -1) {
		found := text[m[0]:m[1]]
		out.WriteString(text[from:m[0]])
		from = m[1]
		switch {
		case m[2] >= 0, !strings.ContainsAny(found, "0123456789'\"`"): // A word such as "effaceable" has no digit.
			out.WriteString(found)
		case m[4] >= 0:
			out.WriteString(found[:1] + "…" + found[:1])
		default:
			out.WriteString("…")
		}
	}
	out.WriteString(text[from:])
	return out.String()
}
