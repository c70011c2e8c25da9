package kafka

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/IBM/sarama"

	"github.com/outboxd/outboxd/relay"
)

// Names of the headers that are ours. conventions section 1.
const (
	headerID            = "id"
	headerType          = "type"
	headerSchemaVersion = "schema_version"
	headerContentType   = "content-type"
	headerTraceparent   = "traceparent"
	headerTracestate    = "tracestate" // the row's, but where the relay's own span stands between
)

// maxWarned bounds how many types a headers remembers to have warned of.
const maxWarned = 1000

// headers makes the headers of records, and warns once of each type whose rows have a header that is ours to set.
type headers struct {
	log    *slog.Logger
	mu     sync.Mutex
	warned map[string]bool // by type
}

func newHeaders(log *slog.Logger) *headers { return &headers{log: log, warned: map[string]bool{}} }

// of gives the headers of m: ours first, then the row's, in their order.
func (h *headers) of(m *relay.Message) []sarama.RecordHeader {
	var few [8]relay.Header // on the stack, where they fit
	all := append(few[:0],
		relay.Header{Name: headerID, Value: m.WireKey},
		relay.Header{Name: headerType, Value: m.Type},
		relay.Header{Name: headerSchemaVersion, Value: strconv.Itoa(m.SchemaVersion)})
	if m.ContentType != "" {
		all = append(all, relay.Header{Name: headerContentType, Value: m.ContentType})
	}
	if hop := m.Hop(); hop != "" {
		all = append(all, relay.Header{Name: headerTraceparent, Value: hop})
	}
	state, spanned := m.Tracestate()
	if state != "" {
		all = append(all, relay.Header{Name: headerTracestate, Value: state})
	}
	for _, row := range m.Headers {
		if spanned && row.Name == headerTracestate {
			continue // the span's stands for it
		}
		if isReserved(row.Name) {
			h.warn(m.Type, row.Name)
		} else {
			all = append(all, row)
		}
	}
	return inOneBuffer(all)
}

// inOneBuffer makes sarama's headers of all, with two allocations however many they are.
func inOneBuffer(all []relay.Header) []sarama.RecordHeader {
	size := 0
	for _, h := range all {
		size += len(h.Name) + len(h.Value)
	}
	buffer, list := make([]byte, 0, size), make([]sarama.RecordHeader, len(all))
	add := func(s string) []byte {
		start := len(buffer)
		buffer = append(buffer, s...)
		return buffer[start:len(buffer):len(buffer)]
	}
	for i, h := range all {
		list[i] = sarama.RecordHeader{Key: add(h.Name), Value: add(h.Value)}
	}
	return list
}

func (h *headers) warn(kind, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.warned[kind] || len(h.warned) >= maxWarned {
		return
	}
	h.warned[kind] = true
	h.log.Warn("a row's header is not sent, since the relay sets headers of that name itself; use another name",
		"type", kind, "header", name)
}

// isReserved tells whether a header of that name is ours, or a standard's that we follow, in whatever case.
func isReserved(name string) bool {
	switch lower := strings.ToLower(name); lower {
	case headerID, headerType, headerSchemaVersion, headerContentType, headerTraceparent:
		return true
	default:
		for _, prefix := range []string{"ce-", "ce_", "cloudevents", "webhook-", "outbox-", "nats-"} {
			if strings.HasPrefix(lower, prefix) {
				return true
			}
		}
		return false
	}
}
