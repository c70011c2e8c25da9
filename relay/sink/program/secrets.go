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
	replacer *strings.Replacer
	longest  int
}

// newSecrets remembers values, also as JSON and URLs write them.
func newSecrets(values map[string]string) *secrets {
	var forms []string
	for _, v := range values {
		quoted, _ := json.Marshal(v) // a string always can be
		for _, form := range []string{v, string(quoted[1 : len(quoted)-1]), url.QueryEscape(v), url.PathEscape(v)} {
			if len(form) >= minSecretBytes {
				forms = append(forms, form)
			}
		}
	}
	// The longest goes first, or the rest of one that begins with another would stay.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	s := &secrets{}
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, masked)
		s.longest = max(s.longest, len(form))
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// hide masks what is secret in a text.
func (s *secrets) hide(text string) string { return s.replacer.Replace(text) }
