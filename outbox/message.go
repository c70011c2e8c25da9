package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Message is one command or event. Only Type is required. Texts are valid UTF-8 without NUL; all but AggregateID and
// Payload are also without control characters.
type Message struct {
	// ID is the message's identity and, on the wire, its idempotency key: a hyphenated UUID; on MySQL and SQLite also any
	// other 1 to 36 of A-Z, a-z, 0-9, _ and -. Empty: a time-ordered UUID (version 7) is made. A second INSERT of an id fails until retention removes the first, so an id derived from the
	// business fact refuses doubles at the source.
	ID string
	// AggregateType says what the message is about and, where it is set, is the routing key. Empty: NULL, and Type is the
	// routing key.
	AggregateType string
	// AggregateID is the key, which becomes Kafka's. Empty: NULL, no key. The table can hold an empty key too; this
	// package cannot write one, since it is nearly always a key that somebody forgot.
	AggregateID string
	// Type is the kind of command or event. No blanks around it.
	Type string
	// Payload is the body, sent byte by byte as it is, JSON or not. Nil: NULL, sent as an empty body.
	Payload []byte
	// ContentType is the payload's media type. Empty: application/json.
	ContentType string
	// SchemaVersion is the version of this type's payload, 1 or more. 0: 1.
	SchemaVersion int
	// Headers travel with the message. Names are not empty.
	Headers map[string]string
	// Traceparent is the W3C trace context in which the message was made. Empty: NULL.
	Traceparent string
	// Delay keeps the message from being sent for that long, by the database's clock, in microseconds.
	Delay time.Duration
	// ExpiresIn ends the message as failed(expired) if it was not sent within that time, by the database's clock, in
	// microseconds; it is longer than Delay. 0: never.
	ExpiresIn time.Duration
}

// InvalidError says which message of a call cannot be written, and why. Nothing was written by that call.
type InvalidError struct {
	Index   int    // of the message in the call, from 0
	Field   string // by its column's name: id, aggregatetype, aggregateid, type, payload, ...
	Problem string // what is wrong, without the value
}

// Error names message, field and problem in one line.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("outbox: message %d: %s: %s", e.Index, e.Field, e.Problem)
}

const (
	// maxText is what a VARCHAR(255) of the other engines holds, in characters.
	maxText = 255
	// maxHeaders bounds the headers column, in bytes: Kafka and HTTP servers take far less.
	maxHeaders = 64 << 10
	// maxPayload keeps a statement below PostgreSQL's 1 GiB for one protocol message when a driver sends bytea as hex.
	maxPayload = 256 << 20
)

// row is a message as it is written.
type row struct {
	id, aggregateType, aggregateID, typ, contentType, headers, traceparent string

	payload       []byte
	schemaVersion int
	delay         time.Duration
	expiresIn     time.Duration
}

// size is what the row adds to a statement, in bytes, roughly.
func (r *row) size() int {
	return len(r.aggregateType) + len(r.aggregateID) + len(r.typ) + len(r.payload) + len(r.contentType) + len(r.headers) +
		len(r.traceparent)
}

// check returns the row of a message, with the defaults filled in, or the field that is wrong and what is wrong with it.
// parse is the database's way with ids.
func (m *Message) check(parse func(string) (id, problem string)) (r row, field, problem string) {
	r = row{
		aggregateType: m.AggregateType,
		aggregateID:   m.AggregateID,
		typ:           m.Type,
		contentType:   m.ContentType,
		traceparent:   m.Traceparent,
		payload:       m.Payload,
		schemaVersion: m.SchemaVersion,
		delay:         m.Delay,
		expiresIn:     m.ExpiresIn,
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	if r.schemaVersion == 0 {
		r.schemaVersion = 1
	}
	if m.ID != "" {
		if r.id, problem = parse(m.ID); problem != "" {
			return r, "id", problem
		}
	}
	if r.headers, problem = encodeHeaders(m.Headers); problem != "" {
		return r, "headers", problem
	}
	for _, c := range []struct{ field, problem string }{
		{"aggregatetype", checkName(r.aggregateType)},
		{"aggregateid", checkText(r.aggregateID)},
		{"type", checkType(r.typ)},
		{"payload", checkPayload(r.payload)},
		{"content_type", checkName(r.contentType)},
		{"schema_version", checkVersion(r.schemaVersion)},
		{"traceparent", checkName(r.traceparent)},
		{"delay", checkDelay(r.delay)},
		{"expires_in", checkExpiry(r.expiresIn, r.delay)},
	} {
		if c.problem != "" {
			return r, c.field, c.problem
		}
	}
	return r, "", ""
}

func checkType(s string) string {
	if s == "" {
		return "empty"
	}
	return checkName(s)
}

// checkName is for texts that become names on the wire.
func checkName(s string) string {
	switch {
	case strings.TrimSpace(s) != s:
		return "blanks around it"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "control character in it"
	}
	return checkText(s)
}

// checkText is for all texts: what a text column of every engine can hold.
func checkText(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "not valid UTF-8"
	case strings.Contains(s, "\x00"):
		return "NUL in it"
	case utf8.RuneCountInString(s) > maxText:
		return fmt.Sprintf("longer than %d characters", maxText)
	}
	return ""
}

func checkPayload(p []byte) string {
	if len(p) > maxPayload {
		return fmt.Sprintf("%d bytes, more than %d: store it elsewhere and send a reference", len(p), maxPayload)
	}
	return ""
}

func checkVersion(v int) string {
	if v < 1 || v > math.MaxInt32 {
		return fmt.Sprintf("%d is not within 1 to %d", v, math.MaxInt32)
	}
	return ""
}

func checkDelay(d time.Duration) string {
	if d < 0 {
		return "negative"
	}
	return ""
}

func checkExpiry(d, delay time.Duration) string {
	switch {
	case d < 0:
		return "negative"
	case d > 0 && d <= delay:
		return "not longer than the delay: it would expire before it is due"
	}
	return ""
}

// encodeHeaders makes the JSON object of the headers column, with the names sorted.
func encodeHeaders(headers map[string]string) (text, problem string) {
	if len(headers) == 0 {
		return "{}", ""
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch value := headers[name]; {
		case name == "":
			return "", "a name is empty"
		case !printable(name):
			return "", fmt.Sprintf("name %q: not valid UTF-8 or a control character in it", name)
		case !printable(value):
			return "", fmt.Sprintf("value of %q: not valid UTF-8 or a control character in it", name)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(headers); err != nil {
		return "", err.Error()
	}
	if b.Len() > maxHeaders {
		return "", fmt.Sprintf("longer than %d bytes", maxHeaders)
	}
	return strings.TrimSuffix(b.String(), "\n"), ""
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
