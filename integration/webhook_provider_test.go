package integration

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/outboxd/outboxd/outbox"
)

// signingSecret is one of Standard Webhooks, made of one letter.
func signingSecret(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// TestSignaturesAndKey: every send, also a second one of a message, verifies with each of two secrets by the public library,
// and carries its key under the header and in the form that the receiver wants.
func TestSignaturesAndKey(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, func(one *request) reply {
		if one.before < 3 {
			return reply{status: 503}
		}
		return reply{}
	})
	var every []byte
	for i := range 256 {
		every = append(every, byte(i))
	}
	ids := d.write(
		t, outbox.Message{Type: "charge_order", Payload: []byte(`{"price": 1.10}`)}, outbox.Message{Type: "charge_order"},
		outbox.Message{Type: "charge_order", Payload: every}, outbox.Message{Type: "charge_order", Payload: []byte(" größe\r\n")},
	)
	first, second := signingSecret("n"), signingSecret("o")
	d.relayTo(t, "a", r, shop{
		fmt.Sprintf("dedupe: 24h, key_header: X-Request-Id, key_format: sf-string, secrets: [%q, %q]", first, second),
		"width: 1", "base: 10ms",
	})
	d.waitDone(t, len(ids), "charge_order")
	keys := map[string]bool{}
	for _, one := range r.seen() {
		for _, secret := range []string{first, second} {
			w, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Verify([]byte(one.body), one.header); err != nil {
				t.Errorf("%q: %v", one.body, err)
			}
		}
		id := one.header.Get("webhook-id")
		keys[id] = true
		if key := one.header.Get("X-Request-Id"); key != `"`+id+`"` || one.key != "" {
			t.Errorf("X-Request-Id: %s, Idempotency-Key: %s, of message %s", key, one.key, id)
		}
	}
	for _, id := range ids {
		if !keys[id] {
			t.Errorf("no request has message %s", id)
		}
	}
	if came, _, _ := r.figures(); came != len(ids)+3 {
		t.Errorf("%d requests came, want %d", came, len(ids)+3)
	}
}

// TestCloudEventsArrive: the public SDK reads from each request what is in the row.
func TestCloudEventsArrive(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, always(reply{}))
	d.relayTo(t, "a", r, shop{
		`dedupe: 24h, format: cloudevents, cloudevents: {source: "urn:shop", type_prefix: com.example., subject: true, extensions: [tenant],
			dataschema: "https://schemas.internal/{type}/{schema_version}"}`, "", "",
	})
	ids := d.write(
		t, outbox.Message{Type: "charge_order", AggregateID: "order-1", SchemaVersion: 3, Payload: []byte(`{"n":1}`), Headers: map[string]string{"tenant": "acme"}, Traceparent: tellTrace},
		outbox.Message{Type: "refund_order", AggregateID: "order-2", Payload: []byte("<refund/>"), ContentType: "application/xml"},
	)
	d.waitCount(t, patience, len(ids), "SELECT count(*) FROM outbox WHERE state = 'done'")
	events := map[string]*event.Event{}
	for _, one := range r.seen() {
		e, err := cehttp.NewEventFromHTTPRequest(&http.Request{Header: one.header, Body: io.NopCloser(strings.NewReader(one.body))})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		events[e.ID()] = e
	}
	charge, refund := events[ids[0]], events[ids[1]]
	if charge == nil || refund == nil {
		t.Fatalf("the events are %v, want %q", events, ids)
	}
	if charge.Source() != "urn:shop" || charge.Type() != "com.example.charge_order" || charge.Subject() != "order-1" ||
		charge.DataSchema() != "https://schemas.internal/charge_order/3" || charge.DataContentType() != "application/json" ||
		charge.Extensions()["tenant"] != "acme" || charge.Extensions()["traceparent"] != tellTrace || !bytes.Equal(charge.Data(), []byte(`{"n":1}`)) {
		t.Errorf("%s", charge)
	}
	if refund.Type() != "com.example.refund_order" || refund.DataContentType() != "application/xml" || !bytes.Equal(refund.Data(), []byte("<refund/>")) {
		t.Errorf("%s", refund)
	}
}
