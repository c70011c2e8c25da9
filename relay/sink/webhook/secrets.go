package webhook

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

const (
	masked         = "<secret>" // what every output shows of a secret
	minSecretBytes = 4          // a shorter one would mask half of any text
	minParamBytes  = 8          // of what the token server is told: many of these are plain words
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
		text := quoted(v)
		for _, form := range []string{v, text, strings.ReplaceAll(text, "/", `\/`), url.QueryEscape(v), url.PathEscape(v)} {
			if len(form) >= minSecretBytes && !slices.Contains(s.values, form) {
				s.values = append(s.values, form)
			}
		}
	}
}

// quoted is how JSON writes a string, between its quotes.
func quoted(v string) string {
	text, _ := json.Marshal(v) // a string always can be
	return string(text[1 : len(text)-1])
}

// addURL remembers what may be secret in the destination's own URL: the values of its query, and a path that has more in
// it than plain words.
func (s *secrets) addURL(u *url.URL) {
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, found := strings.Cut(part, "=")
		if !found {
			value = name // a key without a name
		}
		s.add(value)
		if plain, err := url.QueryUnescape(value); err == nil {
			s.add(plain)
		}
	}
	if isPlain(u.Path) {
		return
	}
	s.add(strings.TrimRight(u.Path, "/"), strings.TrimRight(u.EscapedPath(), "/"))
	for segment := range strings.SplitSeq(u.Path, "/") {
		if !isPlain("/" + segment) {
			s.add(segment)
		}
	}
}

// isPlain tells whether a path is of up to three names such as /commands, /api/v1/orders or /payment-intents. Others may be
// keys, as in the URLs of Slack, where whoever knows the path may post.
func isPlain(path string) bool {
	return regexp.MustCompile(`^(/([A-Za-z]{1,16}([_-][A-Za-z]{1,16})?|v[0-9]{1,2})){0,3}/?$`).MatchString(path)
}

// addParams remembers what the token server is told beside. Short values are words such as the name of a tenant.
func (s *secrets) addParams(params map[string]string) {
	for _, value := range params {
		if len(value) >= minParamBytes {
			s.add(value)
		}
	}
}

func (s *secrets) clone() *secrets { return &secrets{slices.Clone(s.values)} }

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

// trim leaves out the end of a text that was cut, where that may be the start of a secret.
func (s *secrets) trim(text string) string {
	keep := len(text)
	for _, v := range s.values {
		for n := min(len(v)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, v[:n]) {
				keep = min(keep, len(text)-n)
				break
			}
		}
	}
	return text[:keep]
}

// mask hides what is secret in an outcome and cuts its texts to what is kept of them: in this order, so that no half of a
// secret stays.
func (s *secrets) mask(o relay.Outcome) relay.Outcome {
	o.Err = cut(s.hide(o.Err), maxErrBytes)
	o.Result = cut(s.hide(o.Result), maxResultBytes)
	o.Answer = cut(s.hide(o.Answer), maxKeptBytes)
	return o
}
