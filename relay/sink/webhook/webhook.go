// Package webhook sends messages as HTTP POSTs, one request for each send. Start reading at Sink.Send; statusRule says
// which status is which outcome, faultRule the same of a send without an answer.
package webhook

import (
	"context"
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
	url       *url.URL
	timeout   time.Duration
	log       *slog.Logger
	headers   *headers
	transport *http.Transport // asked directly: http.Client would add redirects and cookies
}

var _ relay.Sink = (*Sink)(nil)

// New checks cfg and makes a Sink. It connects to nothing.
func New(cfg Config, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	to, err := cfg.target()
	if err != nil {
		return nil, err
	}
	return &Sink{
		url: to, timeout: cfg.Timeout, log: log, headers: newHeaders(cfg.UserAgent, log),
		transport: newTransport(cfg.Width),
	}, nil
}

// Send makes one POST of m and waits for its answer. One send is one request on the wire at most: nothing is followed and
// nothing is repeated. The status decides, whatever becomes of the body after it.
func (s *Sink) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	headers, err := s.headers.of(m)
	if err != nil {
		return relay.Fail(relay.Rejected, classInvalid, err.Error())
	}
	p := &progress{}
	resp, err := s.transport.RoundTrip(newRequest(p.watch(ctx), s.url, headers, m.Payload))
	if err != nil {
		return faultRule(err, p.wrote())
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes)) // what was read of it serves, too
	o := judge(resp.StatusCode, resp.Header, body, time.Now())
	if o.Kind == relay.KindRetry && o.RetryAfter == 0 && resp.Header.Get(headerRetryAfter) != "" {
		s.log.Debug("a Retry-After that asks for no time to come is ignored", "status", resp.StatusCode)
	}
	return o
}

// Close gives the idle connections back. A send that was given up ends by its own deadline.
func (s *Sink) Close(context.Context) error {
	s.transport.CloseIdleConnections()
	return nil
}
