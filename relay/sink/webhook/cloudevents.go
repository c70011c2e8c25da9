package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// eventPrefix begins the header of each attribute in binary mode. CloudEvents 1.0.2, HTTP protocol binding, 3.1.3.
const eventPrefix = "ce-"

// structuredType begins the content types by which a receiver takes a request for another mode. The same, 3.
const structuredType = "application/cloudevents"

// attributes are the headers that make a message an event in binary mode. Its data is the body as it is, and its
// datacontenttype the request's own Content-Type. An attribute that would be empty is left out.
func (c CloudEvents) attributes(m *relay.Message) []relay.Header {
	key := ""
	if m.AggregateID != nil {
		key = *m.AggregateID
	}
	event := [][2]string{
		{"specversion", "1.0"},
		{"id", m.WireKey},
		{"source", c.Source},
		{"type", c.TypePrefix + m.Type},
		{"time", eventTime(m.CreatedAt)},
		{"dataschema", c.schema(m)},
		{"partitionkey", key},
		{"sequence", fmt.Sprintf("%020d", m.Seq)},
		{"schemaversion", strconv.Itoa(m.SchemaVersion)},
	}
	if c.Subject {
		event = append(event, [2]string{"subject", key})
	}
	if relay.IsTraceparent(m.Traceparent) {
		event = append(event, [2]string{"traceparent", m.Traceparent}, [2]string{"tracestate", value(m, headerTracestate)})
	}
	for _, name := range c.Extensions {
		event = append(event, [2]string{name, value(m, name)})
	}
	headers := make([]relay.Header, 0, len(event))
	for _, a := range event {
		if a[1] != "" {
			headers = append(headers, relay.Header{Name: eventPrefix + a[0], Value: eventEncoded(a[1])})
		}
	}
	return headers
}

// schema fills the template in. What stands in a URI is escaped as a part of a path.
func (c CloudEvents) schema(m *relay.Message) string {
	return strings.NewReplacer(
		"{type}", url.PathEscape(m.Type),
		"{schema_version}", strconv.Itoa(m.SchemaVersion),
	).Replace(c.DataSchema)
}

func eventTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// value is that of a row's header, "" where it has none.
func value(m *relay.Message, name string) string {
	i := slices.IndexFunc(m.Headers, func(h relay.Header) bool { return strings.EqualFold(h.Name, name) })
	if i < 0 {
		return ""
	}
	return m.Headers[i].Value
}

// eventEncoded percent-encodes a blank, a double quote, a percent sign, and all outside U+0021 to U+007E. The HTTP protocol
// binding, 3.1.3.2.
func eventEncoded(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= 0x20 || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isStructured tells whether a receiver would take a body of that content type for a whole event, or many.
func isStructured(contentType string) bool {
	return len(contentType) >= len(structuredType) && strings.EqualFold(contentType[:len(structuredType)], structuredType)
}
