package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

// Validate names every setting that cannot work, and what to write instead, as `webhook.KEY: words`. It asks no server and
// reads no file of TLS. Signing secrets are held to their form; one that cannot be read here is no mistake, since it may be
// there where the relay runs. No error holds a secret, nor a URL, which may have one in its path or query.
func (c Config) Validate() error {
	c = c.withDefaults()
	p := &problems{}
	if u, err := readURL(c.URL); err != nil {
		p.add("url", "%w", err)
	} else {
		c.validateHost(p, "url", u)
	}
	p.check("width", c.Width >= 0, "%d is negative", c.Width)
	p.check("timeout", c.Timeout >= 0, "%s is negative", c.Timeout)
	p.check("connect_timeout", c.ConnectTimeout >= 0, "%s is negative", c.ConnectTimeout)
	c.validateHeaders(p)
	c.validateAuthentication(p)
	c.validateTLS(p)
	c.validateFormat(p)
	c.validateOutcomes(p)
	if c.Result != "" {
		if err := checkPointer(c.Result); err != nil {
			p.add("result", "%w", err)
		}
	}
	return errors.Join(p.errs...)
}

// problems are what Validate found.
type problems struct{ errs []error }

func (p *problems) add(key, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("webhook."+key+": "+format, args...))
}

func (p *problems) check(key string, ok bool, format string, args ...any) {
	if !ok {
		p.add(key, format, args...)
	}
}

func readURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is empty; name where messages are posted, such as https://billing.internal/commands")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("is no URL such as https://billing.internal/commands")
	case !isPort(u.Port()):
		return nil, errors.New("has a port that there is not; name one from 1 to 65535, or none")
	case u.User != nil:
		return nil, errors.New("has a user or a password in it, which would not be sent; take them out")
	case u.Fragment != "":
		return nil, errors.New("has a part behind #, which would not be sent; take it out")
	}
	return u, nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}

// validateHost refuses what could never be reached.
func (c Config) validateHost(p *problems, key string, u *url.URL) {
	if !c.PublicOnly {
		return
	}
	if err := newEgress().judgeHost(u.Hostname()); err != nil {
		p.add(key, "%w; name a host of the public internet, or take public_only out", err)
	}
}

func (c Config) validateHeaders(p *problems) {
	p.check("key_header", isToken(c.KeyHeader), "%.80q is no name of a header", c.KeyHeader)
	p.check("key_header", !isTaken(c.KeyHeader), "%s is set by the relay or by HTTP itself; name another header", c.KeyHeader)
	p.check("key_format", c.KeyFormat == KeyBare || c.KeyFormat == KeySFString, "%.80q is neither bare nor sf-string", c.KeyFormat)
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		switch {
		case !isToken(name):
			p.add("headers", "%.80q is no name of a header", name)
		case isFixed(strings.ToLower(name)) || strings.EqualFold(name, c.KeyHeader):
			p.add("headers."+name, "is set by the relay or by HTTP itself; take it out")
		case c.Headers[name] == nil:
			p.add("headers."+name, "has no value")
		}
	}
	for _, name := range c.AllowHeaders {
		p.check("allow_headers", isToken(name), "%.80q is no name of a header", name)
		p.check("allow_headers", !c.isOurs(name), "%.80s is never taken from a row; take it out", name)
	}
}

// isTaken tells whether the header of the wire key cannot have that name: it is ours, or HTTP's own for what the body is and
// what an answer may be (RFC 9110, 8 and 12).
func isTaken(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "authorization", "cookie", headerTracestate:
		return true
	}
	return isFixed(lower) || slices.ContainsFunc([]string{"accept", "content-", "nats-"}, func(prefix string) bool {
		return strings.HasPrefix(lower, prefix)
	})
}

func (c Config) validateAuthentication(p *problems) {
	var ways []string
	for _, way := range []struct {
		name  string
		given bool
	}{{"bearer", c.Bearer != nil}, {"basic", c.Basic != nil}, {"oauth2", c.OAuth2 != nil}} {
		if way.given {
			ways = append(ways, way.name)
		}
	}
	for name := range c.Headers {
		if strings.EqualFold(name, headerAuthorization) {
			ways = append(ways, "headers."+name)
		}
	}
	if len(ways) > 1 {
		p.add(ways[0], "a request has one way of authentication; keep one of %s", strings.Join(ways, ", "))
	}
	if b := c.Basic; b != nil {
		p.check("basic.username", b.Username != "", "is empty; say who the password is of")
		p.check("basic.username", !strings.ContainsFunc(b.Username, notInUsername), "cannot have a colon or a control character in it (RFC 7617)")
		p.check("basic", b.Password != nil, "has no password")
	}
	if c.OAuth2 != nil {
		c.validateOAuth2(p)
	}
	if c.Secrets != nil {
		if text, err := c.Secrets(); err == nil {
			if _, err := signingKeys(text); err != nil {
				p.add("secrets", "%w", err)
			}
		}
	}
}

func notInUsername(r rune) bool { return r == ':' || r < ' ' || r == 0x7f }

func (c Config) validateOAuth2(p *problems) {
	o := c.OAuth2
	if u, err := readURL(o.TokenURL); err == nil {
		c.validateHost(p, "oauth2.token_url", u)
	} else {
		words := strings.NewReplacer("messages are posted", "tokens come from", "billing.internal/commands", "login.internal/token").Replace(err.Error())
		p.add("oauth2.token_url", "%s", words)
	}
	p.check("oauth2.client_id", o.ClientID != "", "is empty; say who the secret is of")
	p.check("oauth2", o.ClientSecret != nil, "has no client_secret")
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		switch name {
		case "grant_type", "scope", "client_id", "client_secret":
			p.add("oauth2.params."+name, "is set by the relay; take it out")
		}
	}
}

func (c Config) validateTLS(p *problems) {
	if c.TLS == nil {
		return
	}
	p.check("tls", (c.TLS.CertFile == "") == (c.TLS.KeyFile == ""), "cert_file and key_file go together; set both or none")
	secure := strings.HasPrefix(c.URL, "https:") || c.OAuth2 != nil && strings.HasPrefix(c.OAuth2.TokenURL, "https:")
	p.check("tls", secure, "has no effect on an http:// url; make it https, or take tls out")
}

func (c Config) validateFormat(p *problems) {
	e := c.CloudEvents
	if c.Format != FormatCloudEvents {
		p.check("format", c.Format == FormatPlain, "%.80q is neither plain nor cloudevents", c.Format)
		given := e.Source + e.TypePrefix + e.DataSchema + strings.Join(e.Extensions, "")
		p.check("cloudevents", given == "" && !e.Subject, "has no effect without format: cloudevents")
		return
	}
	_, err := url.Parse(e.Source)
	p.check("cloudevents.source", e.Source != "" && err == nil, "wants a URI that says who sends, such as urn:shop:orders")
	schema, err := url.Parse(strings.NewReplacer("{type}", "t", "{schema_version}", "1").Replace(e.DataSchema))
	p.check("cloudevents.dataschema", e.DataSchema == "" || err == nil && schema.IsAbs(),
		"wants a URI, such as https://schemas.internal/{type}/{schema_version}")
	extension := regexp.MustCompile(`^[a-z0-9]+$`)
	for _, name := range e.Extensions {
		p.check("cloudevents.extensions", extension.MatchString(name), "%.80q is no name of an attribute: a-z and 0-9 only", name)
		p.check("cloudevents.extensions", !isAttribute(name), "%.80q is set by the relay; take it out", name)
	}
}

// isAttribute tells whether an attribute of events has a source of its own.
func isAttribute(name string) bool {
	switch name {
	case "specversion", "id", "source", "type", "time", "datacontenttype", "dataschema", "subject", "data",
		"partitionkey", "sequence", "schemaversion", "traceparent", "tracestate":
		return true
	}
	return false
}

func (c Config) validateOutcomes(p *problems) {
	for _, key := range []string{"410", "4xx"} {
		rule, named := c.Outcomes[key]
		if named && c.OnGonePause {
			p.check("on_gone", rule.Kind == relay.KindRetry, "pause wants 410 to be a retry, and outcomes.%s has another outcome for it; take one of them out", key)
			break
		}
	}
	status := regexp.MustCompile(`^[2-5]([0-9][0-9]|xx)$`)
	for _, key := range slices.Sorted(maps.Keys(c.Outcomes)) {
		if !status.MatchString(key) {
			p.add("outcomes", `%.80q is neither a status such as "404" nor a class such as "5xx"`, key)
			continue
		}
		if err := c.Outcomes[key].Check(); err != nil {
			p.add("outcomes."+key, "%w", err)
		}
	}
}
