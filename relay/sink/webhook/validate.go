package webhook

import (
	"errors"
	"fmt"
	"net/url"
)

// Validate names every setting that cannot work, and what to write instead, as `webhook.KEY: words`. It asks no server, and
// holds secrets to their form where they can be read. No error holds a secret, nor a URL, which may have one in its path or
// query.
func (c Config) Validate() error {
	c = c.withDefaults()
	p := &problems{}
	if _, err := readURL(c.URL); err != nil {
		p.add("url", "%w", err)
	}
	if c.Width < 0 {
		p.add("width", "%d is negative", c.Width)
	}
	if c.Timeout < 0 {
		p.add("timeout", "%s is negative", c.Timeout)
	}
	if c.ConnectTimeout < 0 {
		p.add("connect_timeout", "%s is negative", c.ConnectTimeout)
	}
	return p.err()
}

// problems are what Validate found.
type problems struct{ errs []error }

func (p *problems) add(key, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("webhook."+key+": "+format, args...))
}

func (p *problems) err() error { return errors.Join(p.errs...) }

func readURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is empty; name where messages are posted, such as https://billing.internal/commands")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("is no URL such as https://billing.internal/commands")
	case u.User != nil:
		return nil, errors.New("has a user or a password in it, which would not be sent; take them out")
	case u.Fragment != "":
		return nil, errors.New("has a part behind #, which would not be sent; take it out")
	}
	return u, nil
}
