package webhook

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/outboxd/outboxd/relay"
)

// Names of headers that are ours.
const (
	headerContentType   = "Content-Type"
	headerTraceparent   = "traceparent"
	headerTracestate    = "tracestate"
	headerAttempt       = "Outbox-Attempt"
	headerType          = "Outbox-Type"
	headerSchemaVersion = "Outbox-Schema-Version"
	headerUserAgent     = "User-Agent"
)

// maxWarned bounds how many types a headers remembers to have warned of.
const maxWarned = 1000

// headers makes the headers of requests, all but credentials, and warns once of each type whose rows have a header that is
// ours to set.
type headers struct {
	cfg    Config
	log    *slog.Logger
	mu     sync.Mutex
	warned map[string]bool // by type
}

func newHeaders(cfg Config, log *slog.Logger) *headers {
	return &headers{cfg: cfg, log: log, warned: map[string]bool{}}
}

// of gives the headers of m: ours, and the row's; net/http writes them sorted by name. Every send of a life has the same
// ones, but for the attempt. The error names what HTTP cannot carry, which no later send can change.
func (h *headers) of(m *relay.Message) (http.Header, error) {
	ours := h.ours(m)
	if h.cfg.Format == FormatCloudEvents {
		if isStructured(m.ContentType) {
			return nil, fmt.Errorf("content_type %s would make the payload the event itself; send it with format: plain", structuredType)
		}
		ours = append(ours, h.cfg.CloudEvents.attributes(m)...)
	}
	out := make(http.Header, len(ours)+len(m.Headers))
	for _, header := range ours {
		if err := add(out, header); err != nil {
			return nil, err
		}
	}
	_, spanned := m.Tracestate()
	for _, row := range m.Headers {
		if spanned && strings.EqualFold(row.Name, headerTracestate) {
			continue // the span's stands for it
		}
		if h.cfg.isOurs(row.Name) {
			h.warn(m.Type, row.Name)
			continue
		}
		if !h.allows(row.Name) {
			continue
		}
		if err := add(out, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ours are the headers that every request has.
func (h *headers) ours(m *relay.Message) []relay.Header {
	key := m.WireKey
	if h.cfg.KeyFormat == KeySFString {
		key = sfString(key)
	}
	ours := []relay.Header{
		{Name: headerUserAgent, Value: h.cfg.UserAgent},
		{Name: h.cfg.KeyHeader, Value: key},
		{Name: headerAttempt, Value: strconv.Itoa(m.Attempt())},
		{Name: headerType, Value: m.Type},
		{Name: headerSchemaVersion, Value: strconv.Itoa(m.SchemaVersion)},
	}
	if m.ContentType != "" {
		ours = append(ours, relay.Header{Name: headerContentType, Value: m.ContentType})
	}
	if hop := m.Hop(); hop != "" {
		ours = append(ours, relay.Header{Name: headerTraceparent, Value: hop})
	}
	if state, _ := m.Tracestate(); state != "" {
		ours = append(ours, relay.Header{Name: headerTracestate, Value: state})
	}
	return ours
}

// allows tells whether a row's header is sent as it is: where there is a list it is on it, and what goes as an extension of
// an event does not go twice. The trace goes on with its traceparent.
func (h *headers) allows(name string) bool {
	if h.cfg.Format == FormatCloudEvents && containsFold(h.cfg.CloudEvents.Extensions, name) {
		return false
	}
	return h.cfg.AllowHeaders == nil || strings.EqualFold(name, headerTracestate) || containsFold(h.cfg.AllowHeaders, name)
}

func (h *headers) warn(kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.warned[kind] || len(h.warned) >= maxWarned {
		return
	}
	h.warned[kind] = true
	h.log.Warn("a row's header is not sent, since the relay or HTTP itself sets headers of that name; use another name",
		"type", kind, "header", name)
}

// isOurs tells whether a header of that name, in whatever case, is none that a row may set: the relay's own, a
// standard's that it follows, the connection's, a credential, or one that the configuration sets.
func (c Config) isOurs(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "idempotency-key", "authorization", "cookie", strings.ToLower(c.KeyHeader):
		return true
	}
	for static := range c.Headers {
		if strings.EqualFold(static, name) {
			return true
		}
	}
	return isFixed(lower) || strings.HasPrefix(lower, "nats-")
}

// isFixed tells whether a header, its name in lower case, is one that not even the configuration may set.
func isFixed(lower string) bool {
	switch lower {
	case "content-type", "traceparent", "user-agent",
		"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect":
		return true
	}
	return slices.ContainsFunc([]string{"ce-", "ce_", "cloudevents", "webhook-", "outbox-", "proxy-"}, func(prefix string) bool {
		return strings.HasPrefix(lower, prefix)
	})
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
