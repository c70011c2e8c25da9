package mysql

import "strings"

// split takes apart the statements of a file: the server takes one at a time. It knows quotes and comments, and no
// procedures, of which our files have none.
func split(text string) (statements []string) {
	start := 0
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "-- "), strings.HasPrefix(rest, "--\n"), rest[0] == '#':
			i = skip(text, i, "\n")
		case strings.HasPrefix(rest, "/*"):
			i = skip(text, i+2, "*/")
		case rest[0] == '\'', rest[0] == '"', rest[0] == '`':
			i = skip(text, i+1, rest[:1]) // A doubled quote is two quoted texts beside each other.
		case rest[0] == ';':
			statements = append(statements, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return statements
}

// skip returns the place of the last byte of the next end mark.
func skip(text string, from int, end string) int {
	n := strings.Index(text[from:], end)
	if n < 0 {
		return len(text)
	}
	return from + n + len(end) - 1
}
