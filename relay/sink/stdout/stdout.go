// Package stdout writes messages as JSON lines: for demonstrations, tests and pipes.
package stdout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/outboxd/outboxd/relay"
)

// Sink writes one JSON object a line. Its fields are named as the columns; id is the wire key, created_at is in UTC, and
// a payload that is not UTF-8 is in payload_base64 instead of payload. The result of a message is the number of its line.
type Sink struct {
	lines chan line
	quit  chan struct{}
	ended chan struct{} // closed when the writer has ended
}

var _ relay.Sink = (*Sink)(nil)

// line is a line on its way to the writer.
type line struct {
	text    []byte
	outcome chan relay.Outcome // of one place
}

// New makes a Sink that writes to w until it is closed; nobody else may write to w meanwhile.
func New(w io.Writer) *Sink {
	s := &Sink{lines: make(chan line), quit: make(chan struct{}), ended: make(chan struct{})}
	go s.write(w)
	return s
}

// Send writes m. It is done when the whole line was written; a writer that blocks past the end of ctx makes it unknown,
// or unsent where the line's turn had not come.
func (s *Sink) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	text, err := encode(m)
	if err != nil {
		return relay.Fail(relay.Rejected, "invalid", "stdout: the message cannot be written as JSON: "+err.Error())
	}
	l := line{text: text, outcome: make(chan relay.Outcome, 1)}
	select {
	case s.lines <- l:
	case <-s.quit:
		return relay.Unsent("other", "stdout: the destination is closed")
	case <-ctx.Done():
		return relay.Unsent("timeout", "stdout: nobody reads it fast enough")
	}
	select {
	case o := <-l.outcome:
		return o
	case <-ctx.Done():
		return relay.Unknown("timeout", "stdout: nobody reads it fast enough")
	}
}

// Close ends the writer. A write that blocks is left behind when ctx ends, with an error that says so.
func (s *Sink) Close(ctx context.Context) error {
	close(s.quit)
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stdout: nobody reads it, a write is left behind: %w", ctx.Err())
	}
}

// write writes lines one after the other. After a line that was written in part it starts a new one, so that the next
// message has a whole line of its own.
func (s *Sink) write(w io.Writer) {
	defer close(s.ended)
	torn := false
	for n := int64(1); ; {
		select {
		case <-s.quit:
			return
		case l := <-s.lines:
			text := l.text
			if torn {
				text = append([]byte{'\n'}, text...)
			}
			written, err := w.Write(text)
			switch {
			case err == nil:
				l.outcome <- relay.Done(strconv.FormatInt(n, 10))
				torn = false
				n++
			case written == 0:
				l.outcome <- relay.Unsent("other", "stdout: "+err.Error())
			default:
				l.outcome <- relay.Unknown("other", "stdout: the line was written in part: "+err.Error())
				torn = true
				n++
			}
		}
	}
}

// object is a message as people read it: what the application wrote, under the names of the columns.
type object struct {
	ID            string            `json:"id"`
	AggregateType *string           `json:"aggregatetype"`
	AggregateID   *string           `json:"aggregateid"`
	Type          string            `json:"type"`
	SchemaVersion int               `json:"schema_version"`
	ContentType   string            `json:"content_type"`
	Headers       map[string]string `json:"headers"`
	Traceparent   *string           `json:"traceparent"`
	CreatedAt     time.Time         `json:"created_at"`
	Payload       *string           `json:"payload"`
	PayloadBase64 []byte            `json:"payload_base64,omitempty"`
}

// encode makes the line of m, with its end.
func encode(m *relay.Message) ([]byte, error) {
	o := object{
		ID:            m.WireKey,
		AggregateType: m.AggregateType,
		AggregateID:   m.AggregateID,
		Type:          m.Type,
		SchemaVersion: m.SchemaVersion,
		ContentType:   m.ContentType,
		Headers:       make(map[string]string, len(m.Headers)),
		CreatedAt:     m.CreatedAt.UTC(),
	}
	for _, h := range m.Headers {
		o.Headers[h.Name] = h.Value
	}
	if m.Traceparent != "" {
		o.Traceparent = &m.Traceparent
	}
	switch {
	case m.Payload == nil:
	case utf8.Valid(m.Payload):
		text := string(m.Payload)
		o.Payload = &text
	default:
		o.PayloadBase64 = m.Payload
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(o)
	return b.Bytes(), err
}
