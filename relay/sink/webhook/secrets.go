package webhook

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

const minParamBytes = 8 // of what the token server is told: many of these are plain words

// secrets are what one send carries that no output may show.
type secrets struct{ relay.Secrets }

// read asks a source, and remembers what it gave.
func (s *secrets) read(from Source) (string, error) {
	value, err := from()
	if err != nil {
		return "", err
	}
	s.add(value)
	return value, nil
}

// add remembers values, also without a scheme such as Bearer in front.
func (s *secrets) add(values ...string) {
	s.Add(values...)
	for _, v := range values {
		if _, bare, found := strings.Cut(v, " "); found {
			s.add(bare)
		}
	}
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

func (s *secrets) clone() *secrets { return &secrets{*s.Clone()} }

// mask hides what is secret in an outcome and cuts its texts to what is kept of them: in this order, so that no half of a
// secret stays.
func (s *secrets) mask(o relay.Outcome) relay.Outcome {
	o.Err = relay.Cut(s.Hide(o.Err), maxErrBytes)
	o.Result = relay.Cut(s.Hide(o.Result), maxResultBytes)
	o.Answer = relay.Cut(s.Hide(o.Answer), maxKeptBytes)
	return o
}
