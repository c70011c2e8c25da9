package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Defaults of Config. relay/DESIGN.md, Defaults.
const (
	DefaultWidth     = 8
	DefaultTimeout   = 20 * time.Second
	defaultUserAgent = "outboxd"
)

// Config says where messages are posted.
type Config struct {
	URL       string        // http or https, without user and fragment; no part of it comes from a message
	Width     int           // sends at once, which is how many idle connections are kept; default 8
	Timeout   time.Duration // of one Send, beside what the caller's context allows; default 20 s
	UserAgent string        // default "outboxd"
}

// Validate names every setting that cannot work, and what to write instead. No error holds the URL, which may have a
// secret in its path or query.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("webhook."+key+": "+format, args...))
	}
	if _, err := c.target(); err != nil {
		bad("url", "%w", err)
	}
	if c.Width < 0 {
		bad("width", "%d is negative", c.Width)
	}
	if c.Timeout < 0 {
		bad("timeout", "%s is negative", c.Timeout)
	}
	return errors.Join(errs...)
}

// target reads the URL.
func (c Config) target() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
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

func (c Config) withDefaults() Config {
	if c.Width == 0 {
		c.Width = DefaultWidth
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.UserAgent == "" {
		c.UserAgent = defaultUserAgent
	}
	return c
}
