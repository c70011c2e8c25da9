package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	maxTokenBytes = 64 << 10        // of a token server's answer
	maxRenewEarly = time.Minute     // before its end, or a tenth of its life if that is less
	renewPause    = 5 * time.Second // after a renewal that failed, while the old token is good
)

// tokens keeps the one token of a destination: all sends share it, one fetch at a time brings the next, before the end of
// the old one, and a token that the receiver refused is dropped.
type tokens struct {
	server  OAuth2
	client  *http.Client
	timeout time.Duration   // of a fetch
	life    context.Context // ends with the Sink, and with it a fetch that nobody waits for

	mu    sync.Mutex
	held  *token
	under *fetch // nil: none is under way
}

// token is an access token, with the secret that it was asked for by.
type token struct {
	*oauth2.Token
	secret string
	renew  time.Time // when to ask for the next one; zero: it has no end
}

func (t *token) good(now time.Time) bool {
	return t != nil && (t.Expiry.IsZero() || now.Before(t.Expiry))
}

func (t *token) due(now time.Time) bool { return !t.renew.IsZero() && !now.Before(t.renew) }

// fetch is one question to the token server. What it came to is read after done is closed.
type fetch struct {
	done  chan struct{}
	token *token
	err   error
}

// get gives a token that is good now. It waits where there is none, as long as ctx allows, and shares with all who wait
// what came, a failure too. The error is an unproven.
func (t *tokens) get(ctx context.Context) (*token, error) {
	t.mu.Lock()
	held, now := t.held, time.Now()
	good := held.good(now)
	if good && !held.due(now) {
		t.mu.Unlock()
		return held, nil
	}
	f := t.under
	if f == nil {
		f = &fetch{done: make(chan struct{})}
		t.under = f
		go t.run(f)
	}
	t.mu.Unlock()
	if good {
		return held, nil
	}
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return nil, &unproven{classTimeout, "no token from the token server in time"}
	}
}

// run makes a fetch. It has a deadline of its own: the send that began it may end before those that wait beside it.
func (t *tokens) run(f *fetch) {
	ctx, cancel := context.WithTimeout(t.life, t.timeout)
	defer cancel()
	f.token, f.err = t.ask(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.under = nil
	switch {
	case f.err == nil:
		t.held = f.token
	case t.held.good(time.Now()):
		later := *t.held
		later.renew = time.Now().Add(renewPause)
		t.held = &later
	}
	close(f.done)
}

// drop forgets a token, unless another one has come meanwhile.
func (t *tokens) drop(used *token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held != nil && t.held.AccessToken == used.AccessToken {
		t.held = nil
	}
}

// ask asks the token server.
func (t *tokens) ask(ctx context.Context) (*token, error) {
	secret, err := t.server.ClientSecret()
	if err != nil {
		return nil, unread("oauth2.client_secret", err)
	}
	config := clientcredentials.Config{
		ClientID: t.server.ClientID, ClientSecret: secret, TokenURL: t.server.TokenURL, Scopes: t.server.Scopes,
		EndpointParams: url.Values{}, AuthStyle: oauth2.AuthStyleInHeader,
	}
	if t.server.InBody {
		config.AuthStyle = oauth2.AuthStyleInParams
	}
	for name, value := range t.server.Params {
		config.EndpointParams.Set(name, value)
	}
	asked := time.Now()
	got, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.client))
	if err != nil {
		return nil, tokenFault(err)
	}
	fresh := &token{Token: got, secret: secret}
	if !got.Expiry.IsZero() {
		whole := got.Expiry.Sub(asked)
		fresh.renew = got.Expiry.Add(-min(whole/10, maxRenewEarly))
	}
	return fresh, nil
}

// tokenFault says why there is no token. x/oauth2's own errors quote the answer and the URL, both of which may hold secrets.
func tokenFault(err error) error {
	var (
		answered *oauth2.RetrieveError
		failed   *url.Error
	)
	switch {
	case errors.As(err, &answered):
		status := answered.Response.StatusCode
		class := statusRule(status).Class
		if status/100 == 2 || status/100 == 4 {
			class = classAuth
		}
		words := "no token: the token server answered HTTP " + strconv.Itoa(status)
		if isTokenError(answered.ErrorCode) {
			words += ", " + answered.ErrorCode
		}
		return &unproven{class, words}
	case errors.As(err, &failed):
		class := classOf(failed.Err)
		if class == classTimeout {
			return &unproven{class, "no token: no answer of the token server in time"}
		}
		if !errors.As(failed.Err, new(unconnected)) {
			return &unproven{class, "no token: the connection to the token server ended before an answer came"}
		}
		return &unproven{class, "no token: " + oneLine(failed.Err)}
	}
	return &unproven{classOther, "no token: the token server's answer holds none"}
}

// isTokenError tells whether a code is one of RFC 6749, 5.2: others are text of the server's own.
func isTokenError(code string) bool {
	switch code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
		return true
	}
	return false
}

// bounded is a transport that reads no more than maxTokenBytes of an answer.
type bounded struct{ *http.Transport }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxTokenBytes), resp.Body}
	}
	return resp, err
}

// newTokens makes the keeper of a destination's token. A token server has one address: redirects are not followed.
func newTokens(life context.Context, cfg Config, d *dialer) *tokens {
	client := &http.Client{
		Transport:     bounded{newTransport(d.tokenDialer(cfg), 1, false)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &tokens{server: *cfg.OAuth2, client: client, timeout: cfg.Timeout, life: life}
}
