package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

const headerAuthorization = "Authorization"

// credentials are what a request proves by that it is ours. Every secret is read anew for each send.
type credentials struct {
	headers map[string]Source
	bearer  Source
	basic   *Basic
	tokens  *tokens // nil: no OAuth2
	signing Source
}

// unproven says why a request could not be made ours: nothing goes out then.
type unproven struct{ class, words string }

func (u *unproven) Error() string { return u.words }

func unread(setting string, err error) error {
	return &unproven{classAuth, "webhook." + setting + ": " + oneLine(err)}
}

// add gives a request of m its credentials, and its signature where one is wanted. The token, nil without OAuth2, is the
// one to drop where the receiver answers 401. An error is an unproven.
func (c *credentials) add(ctx context.Context, to http.Header, m *relay.Message, known *secrets) (*token, error) {
	used, err := c.prove(ctx, to, known)
	if err != nil || c.signing == nil {
		return used, err
	}
	text, err := known.read(c.signing)
	if err != nil {
		return nil, unread("secrets", err)
	}
	known.add(signingSecrets(text)...)
	keys, err := signingKeys(text)
	if err != nil {
		return nil, unread("secrets", err)
	}
	sign(to, keys, m.WireKey, time.Now(), m.Payload)
	return used, nil
}

// prove sets the static headers and the authorization, and tells known what is secret of them.
func (c *credentials) prove(ctx context.Context, to http.Header, known *secrets) (*token, error) {
	for _, name := range slices.Sorted(maps.Keys(c.headers)) {
		value, err := known.read(c.headers[name])
		if err != nil {
			return nil, unread("headers."+name, err)
		}
		if err := setSecret(to, name, "", value); err != nil {
			return nil, err
		}
	}
	return c.authorize(ctx, to, known)
}

// authorize sets the Authorization header, in one of its ways at most.
func (c *credentials) authorize(ctx context.Context, to http.Header, known *secrets) (*token, error) {
	switch {
	case c.bearer != nil:
		value, err := known.read(c.bearer)
		if err != nil {
			return nil, unread("bearer", err)
		}
		return nil, setSecret(to, headerAuthorization, "Bearer ", value)
	case c.basic != nil:
		password, err := known.read(c.basic.Password)
		if err != nil {
			return nil, unread("basic.password", err)
		}
		pair := base64.StdEncoding.EncodeToString([]byte(c.basic.Username + ":" + password))
		known.add(pair)
		return nil, setSecret(to, headerAuthorization, "Basic ", pair)
	case c.tokens != nil:
		used, err := c.tokens.get(ctx)
		if err != nil {
			return nil, err
		}
		known.add(used.AccessToken, used.secret)
		return used, setSecret(to, headerAuthorization, used.Type()+" ", used.AccessToken)
	}
	return nil, nil
}

// rejected drops a token that the receiver did not take.
func (c *credentials) rejected(used *token) {
	if used != nil {
		c.tokens.drop(used)
	}
}

func (c *credentials) close() {
	if c.tokens != nil {
		c.tokens.client.CloseIdleConnections()
	}
}

// check reads every secret once, so that one that is not there or cannot be sent is found at the start. It returns what is
// wrong, each as an unproven.
func (c *credentials) check() []error {
	var errs []error
	check := func(setting string, from Source, usable func(string) error) {
		if from == nil {
			return
		}
		value, err := from()
		if err == nil {
			err = usable(value)
		}
		if err != nil {
			errs = append(errs, unread(setting, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.headers)) {
		check("headers."+name, c.headers[name], sendable)
	}
	check("bearer", c.bearer, sendable)
	if c.basic != nil {
		check("basic.password", c.basic.Password, sendable)
	}
	if c.tokens != nil {
		check("oauth2.client_secret", c.tokens.server.ClientSecret, sendable)
	}
	check("secrets", c.signing, func(text string) error {
		_, err := signingKeys(text)
		return err
	})
	return errs
}

// setSecret sets a header whose value, behind its scheme, no output may show. Its error does not either.
func setSecret(to http.Header, name, scheme, value string) error {
	if err := sendable(value); err != nil {
		return &unproven{classAuth, "the secret of header " + name + " " + err.Error()}
	}
	to.Set(name, scheme+value)
	return nil
}

// sendable tells whether a secret can be the value of a header.
func sendable(value string) error {
	if value == "" {
		return errors.New("is empty")
	}
	for i := range len(value) {
		if value[i] < 0x20 || value[i] == 0x7f {
			return errors.New("has a control character in it, such as a line break")
		}
	}
	return nil
}
