package webhook

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

const (
	masked         = "<secret>" // what every output shows of a secret
	minSecretBytes = 4          // a shorter one would mask half of any text
)

// secrets are what one send carries that no output may show: a receiver may say in its answer what it was sent.
type secrets struct{ values []string }

// read asks a source, and remembers what it gave.
func (s *secrets) read(from Source) (string, error) {
	value, err := from()
	if err != nil {
		return "", err
	}
	s.add(value)
	return value, nil
}

// add remembers values, also as JSON and URLs write them, and without a scheme such as Bearer in front.
func (s *secrets) add(values ...string) {
	for _, v := range values {
		if _, bare, found := strings.Cut(v, " "); found {
			s.add(bare)
		}
		quoted, _ := json.Marshal(v) // a string always can be
		for _, form := range []string{v, string(quoted[1 : len(quoted)-1]), url.QueryEscape(v), url.PathEscape(v)} {
			if len(form) >= minSecretBytes && !slices.Contains(s.values, form) {
				s.values = append(s.values, form)
			}
		}
	}
}

// hide masks what is secret in a text.
func (s *secrets) hide(text string) string {
	if text == "" || len(s.values) == 0 {
		return text
	}
	// The longest goes first, or the rest of one that begins with another would stay.
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(s.values))
	for _, v := range s.values {
		pairs = append(pairs, v, masked)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// longest is the length of the longest one.
func (s *secrets) longest() int {
	n := 0
	for _, v := range s.values {
		n = max(n, len(v))
	}
	return n
}

// mask hides what is secret in an outcome and cuts its texts to what is kept of them: in this order, so that no half of a
// secret stays.
func (s *secrets) mask(o relay.Outcome) relay.Outcome {
	o.Err = s.hide(o.Err)
	o.Result = cut(s.hide(o.Result), maxResultBytes)
	o.Answer = cut(s.hide(o.Answer), maxKeptBytes)
	return o
}
