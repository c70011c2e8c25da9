package relay

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	masked         = "<secret>"
	minSecretBytes = 4 // a shorter one would mask half of any text
)

// Secrets are values that a sink hands to its destination and no output may show: a destination may say in its answer what
// it was given. The zero value has none. Safe for concurrent use once nothing is added any more.
type Secrets struct {
	forms []string // as they can be written, the longest first
}

// Add remembers values, also as JSON and URLs write them, and without the blanks and line ends around them, which who reads a
// secret takes off. Those of less than 4 bytes are left aside.
func (s *Secrets) Add(values ...string) {
	for _, v := range values {
		if bare := strings.TrimSpace(v); bare != v {
			s.Add(bare)
		}
		quoted, _ := json.Marshal(v) // a string always can be
		text := string(quoted[1 : len(quoted)-1])
		for _, form := range []string{v, text, strings.ReplaceAll(text, "/", `\/`), url.QueryEscape(v), url.PathEscape(v)} {
			if len(form) >= minSecretBytes && !slices.Contains(s.forms, form) {
				s.forms = append(s.forms, form)
			}
		}
	}
	// The longest goes first, or the rest of one that begins with another would stay.
	slices.SortStableFunc(s.forms, func(a, b string) int { return len(b) - len(a) })
}

// Clone gives the same secrets, to add others to them.
func (s *Secrets) Clone() *Secrets { return &Secrets{slices.Clone(s.forms)} }

// Longest is the number of bytes that a secret takes at most. A text of which so much more is read than is kept has those at
// its edge whole.
func (s *Secrets) Longest() int {
	if len(s.forms) == 0 {
		return 0
	}
	return len(s.forms[0])
}

// Hide writes <secret> in the place of each secret in a text. Hide before cutting: no half of a secret stays then.
func (s *Secrets) Hide(text string) string {
	if text == "" || len(s.forms) == 0 {
		return text
	}
	pairs := make([]string, 0, 2*len(s.forms))
	for _, form := range s.forms {
		pairs = append(pairs, form, masked)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// TrimEnd leaves out the end of a text that was cut there, where that may be the start of a secret.
func (s *Secrets) TrimEnd(text string) string {
	return text[:len(text)-s.edge(func(form string, n int) bool { return strings.HasSuffix(text, form[:n]) })]
}

// TrimStart leaves out the start of a text that was cut there, where that may be the end of a secret.
func (s *Secrets) TrimStart(text string) string {
	return text[s.edge(func(form string, n int) bool { return strings.HasPrefix(text, form[len(form)-n:]) }):]
}

// edge is the length of the longest part of a secret that a text has at its edge.
func (s *Secrets) edge(has func(form string, n int) bool) (longest int) {
	for _, form := range s.forms {
		for n := len(form) - 1; n > longest; n-- {
			if has(form, n) {
				longest = n
			}
		}
	}
	return longest
}
