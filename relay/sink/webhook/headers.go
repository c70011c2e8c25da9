package webhook

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/outboxd/outboxd/relay"
)

// Names of the headers that are ours.
const (
	headerKey           = "Idempotency-Key"
	headerContentType   = "Content-Type"
	headerTraceparent   = "traceparent"
	headerAttempt       = "Outbox-Attempt"
	headerType          = "Outbox-Type"
	headerSchemaVersion = "Outbox-Schema-Version"
	headerUserAgent     = "User-Agent"
)

// maxWarned bounds how many types a headers remembers to have warned of.
const maxWarned = 1000

// headers makes the headers of requests, and warns once of each type whose rows have a header that is ours to set.
type headers struct {
	userAgent string
	log       *slog.Logger
	mu        sync.Mutex
	warned    map[string]bool // by type
}

func newHeaders(userAgent string, log *slog.Logger) *headers {
	return &headers{userAgent: userAgent, log: log, warned: map[string]bool{}}
}

// of gives the headers of m: ours, and the row's; net/http writes them sorted by name. Every send of a life has the same
// ones, but for the attempt. The error names a header that HTTP cannot carry, which no later send can change.
func (h *headers) of(m *relay.Message) (http.Header, error) {
	ours := []relay.Header{
		{Name: headerUserAgent, Value: h.userAgent},
		{Name: headerKey, Value: m.WireKey},
		{Name: headerAttempt, Value: strconv.Itoa(m.Attempt())},
		{Name: headerType, Value: m.Type},
		{Name: headerSchemaVersion, Value: strconv.Itoa(m.SchemaVersion)},
	}
	if m.ContentType != "" {
		ours = append(ours, relay.Header{Name: headerContentType, Value: m.ContentType})
	}
	if relay.IsTraceparent(m.Traceparent) {
		ours = append(ours, relay.Header{Name: headerTraceparent, Value: m.Traceparent})
	}
	out := make(http.Header, len(ours)+len(m.Headers))
	for _, header := range ours {
		if err := add(out, header); err != nil {
			return nil, err
		}
	}
	for _, row := range m.Headers {
		if isReserved(row.Name) {
			h.warn(m.Type, row.Name)
			continue
		}
		if err := add(out, row); err != nil {
			return nil, err
		}
	}
	return out, nil
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

// add adds a header, if HTTP can carry it.
func add(to http.Header, header relay.Header) error {
	if !isToken(header.Name) {
		return fmt.Errorf("header %.80q has a name that HTTP does not take; use letters, digits and hyphens", header.Name)
	}
	value, ok := encoded(header.Value)
	if !ok {
		return fmt.Errorf("header %s has a control character, such as a line break, in its value", header.Name)
	}
	to.Add(header.Name, value)
	return nil
}

// encoded percent-encodes what is not ASCII. Control characters, which could begin another header, are not ok.
func encoded(value string) (_ string, ok bool) {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; {
		case c < 0x20 || c == 0x7f:
			return "", false
		case c >= 0x80:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// isToken tells whether a name is a token of RFC 9110, 5.6.2.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// isReserved tells whether a header of that name is ours, a standard's that we follow, or the connection's own, in
// whatever case.
func isReserved(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "idempotency-key", "content-type", "traceparent", "user-agent",
		"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
		"authorization", "cookie":
		return true
	}
	for _, prefix := range []string{"ce-", "ce_", "cloudevents", "webhook-", "outbox-", "nats-", "proxy-"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return false
}
