package webhook

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

// add adds a header, if HTTP can carry it.
func add(to http.Header, header relay.Header) error {
	if !isToken(header.Name) {
		return fmt.Errorf("header %.80q has a name that HTTP does not take; use letters, digits and hyphens", header.Name)
	}
	value, ok := encoded(header.Value)
	if !ok {
		return fmt.Errorf("header %s has a control character, such as a line break, in its value", header.Name)
	}
	to.Add(header.Name, value)
	return nil
}

// encoded percent-encodes what is not ASCII. Control characters, which could begin another header, are not ok.
func encoded(value string) (_ string, ok bool) {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; {
		case c < 0x20 || c == 0x7f:
			return "", false
		case c >= 0x80:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// sfString writes a string of structured fields. RFC 9651, 4.1.6.
func sfString(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// isToken tells whether a name is a token of RFC 9110, 5.6.2.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}
