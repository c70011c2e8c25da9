package program

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	masked         = "<secret>" // what every output shows of a secret
	minSecretBytes = 4          // a shorter one would mask half of any text
)

// secrets are the values that a program gets beside its message: it may write what it was given. Safe for concurrent use.
type secrets struct {
	forms    []string // as they can be written, the longest first
	longest  int
	replacer *strings.Replacer
}

// newSecrets remembers values, also as JSON and URLs write them.
func newSecrets(values map[string]string) *secrets {
	s := &secrets{}
	for _, v := range values {
		quoted, _ := json.Marshal(v) // a string always can be
		for _, form := range []string{v, string(quoted[1 : len(quoted)-1]), url.QueryEscape(v), url.PathEscape(v)} {
			if len(form) >= minSecretBytes {
				s.forms = append(s.forms, form)
			}
		}
	}
	// The longest goes first, or the rest of one that begins with another would stay.
	slices.SortFunc(s.forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(s.forms))
	for _, form := range s.forms {
		pairs = append(pairs, form, masked)
		s.longest = max(s.longest, len(form))
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// hide masks what is secret in a text.
func (s *secrets) hide(text string) string { return s.replacer.Replace(text) }

// cutEnd takes off the start of a secret with which a text ends where it was cut.
func (s *secrets) cutEnd(text string) string {
	return text[:len(text)-s.edge(func(form string, n int) bool { return strings.HasSuffix(text, form[:n]) })]
}

// cutStart takes off the end of a secret with which a text begins where it was cut.
func (s *secrets) cutStart(text string) string {
	return text[s.edge(func(form string, n int) bool { return strings.HasPrefix(text, form[len(form)-n:]) }):]
}

// edge is the length of the longest part of a secret for which a text has that part at its edge.
func (s *secrets) edge(has func(form string, n int) bool) (longest int) {
	for _, form := range s.forms {
		for n := longest + 1; n < len(form); n++ {
			if has(form, n) {
				longest = n
			}
		}
	}
	return longest
}
