// Package webhook sends messages as HTTP POSTs, one request for each send. Start reading at Sink.Send; statusRule says
// which status is which outcome, faultRule the same of a send without an answer.
package webhook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// maxAnswerBytes is how much of an answer's body is read, so that its connection can be used again. A longer one costs the
// connection.
const maxAnswerBytes = 64 << 10

// Sink is one URL as a destination. Safe for concurrent use.
type Sink struct {
	url         *url.URL
	timeout     time.Duration
	log         *slog.Logger
	headers     *headers
	credentials *credentials
	known       *secrets // what is secret of every send
	rules       rules
	result      string // a JSON pointer, or ""
	dialer      *dialer
	transport   *http.Transport // asked directly: http.Client would add redirects and cookies
	end         func()          // of all that goes on between sends
}

var _ relay.Sink = (*Sink)(nil)

// New checks cfg, reads its secrets and files, and makes a Sink. It connects to nothing. Its errors are as Validate's.
func New(cfg Config, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	to, err := readURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	secure, err := cfg.TLS.config()
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	d := newDialer(cfg, secure)
	s := &Sink{
		url: to, timeout: cfg.Timeout, log: log, headers: newHeaders(cfg, log),
		credentials: &credentials{headers: cfg.Headers, bearer: cfg.Bearer, basic: cfg.Basic, signing: cfg.Secrets}, known: &secrets{},
		rules:  rules{cfg.Outcomes, cfg.RemembersFailures, cfg.OnGonePause},
		result: cfg.Result, dialer: d, transport: newTransport(d, cfg.Width, cfg.FreshConnections), end: end,
	}
	s.known.addURL(to)
	if cfg.OAuth2 != nil {
		s.credentials.tokens = newTokens(life, cfg, d)
		s.known.addParams(cfg.OAuth2.Params)
	}
	if errs := s.credentials.check(); len(errs) > 0 {
		end()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Send makes one POST of m and waits for its answer. One send is one request on the wire at most: nothing is followed and
// nothing is repeated. The status decides, whatever becomes of the body after it.
func (s *Sink) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	ctx, cancel := s.within(ctx)
	defer cancel()
	header, err := s.headers.of(m)
	if err != nil {
		o := relay.Fail(relay.Rejected, classInvalid, err.Error())
		o.Ours = true
		return o
	}
	known := s.known.clone()
	used, err := s.credentials.add(ctx, header, m, known)
	if why, ok := errors.AsType[*unproven](err); ok {
		return known.mask(relay.Unsent(why.class, why.words))
	}
	p := &progress{startBy: m.StartBy}
	resp, err := s.transport.RoundTrip(newRequest(p.watch(ctx), s.url, header, m.Payload))
	if err != nil {
		return known.mask(faultRule(err, p))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		s.credentials.rejected(used)
	}
	o := s.judge(answer{resp.StatusCode, resp.Header, read(resp, known)}, time.Now())
	if o.Kind == relay.KindRetry && o.RetryAfter == 0 && resp.Header.Get(headerRetryAfter) != "" {
		s.log.Debug("a Retry-After that asks for no time to come is ignored", "status", resp.StatusCode)
	}
	return known.mask(o)
}

// within bounds a ctx that has no deadline.
func (s *Sink) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.timeout)
}

// read gives the start of an answer's body: what came of it serves, whatever the rest did. Where there was more, or should
// have been, the end of what was read may be half a secret, and is left out.
func read(resp *http.Response, known *secrets) []byte {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil // what follows is another protocol, and has no end
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil || len(body) == maxAnswerBytes {
		return []byte(known.TrimEnd(known.Hide(string(body))))
	}
	return body
}

// Close gives the idle connections back. A send that was given up ends by its own deadline.
func (s *Sink) Close(context.Context) error {
	s.end()
	s.transport.CloseIdleConnections()
	s.credentials.close()
	return nil
}
