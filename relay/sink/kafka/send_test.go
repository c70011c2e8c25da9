package kafka

import (
	"strconv"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

func TestSendKeepsEveryByteAndSaysWhereItIs(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	key, none := "order-1", ""
	cases := []struct {
		name string
		m    func(*relay.Message)
		key  []byte
		want []byte
	}{
		{"NULL key and NULL payload", func(m *relay.Message) { m.Payload = nil }, nil, []byte{}},
		{"empty key and empty payload", func(m *relay.Message) { m.AggregateID, m.Payload = &none, []byte{} }, []byte{}, []byte{}},
		{"every byte", func(m *relay.Message) { m.AggregateID, m.Payload = &key, every }, []byte(key), every},
		{"JSON null", func(m *relay.Message) { m.Payload = []byte("null") }, nil, []byte("null")},
	}
	for i, c := range cases {
		m := newMessage("orders", "id-"+strconv.Itoa(i))
		c.m(m)
		o := sink.Send(within(t, generous), m)
		if o.Kind != relay.KindDone || o.Result != "0@"+strconv.Itoa(i) {
			t.Fatalf("%s: %+v", c.name, o)
		}
	}
	for i, r := range read(t, cluster.ListenAddrs(), "orders", len(cases)) {
		c := cases[i]
		if string(r.Key) != string(c.key) || (r.Key == nil) != (c.key == nil) {
			t.Errorf("%s: key %#v, want %#v", c.name, r.Key, c.key)
		}
		if string(r.Value) != string(c.want) || r.Value == nil {
			t.Errorf("%s: value %#v, want %#v", c.name, r.Value, c.want)
		}
	}
}

func TestTombstoneOnEmpty(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), func(c *Config) { c.TombstoneOnEmpty = true })
	for _, payload := range [][]byte{nil, {}} {
		m := newMessage("orders", "a")
		m.Payload = payload
		wantKind(t, sink.Send(within(t, generous), m), relay.KindDone, "")
	}
	records := read(t, cluster.ListenAddrs(), "orders", 2)
	if records[0].Value != nil || records[1].Value == nil {
		t.Errorf("values %#v and %#v, want nil and empty", records[0].Value, records[1].Value)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m := newMessage("orders", "id-1")
	m.WireKey, m.SchemaVersion, m.Traceparent = "wire-1", 3, trace
	m.Headers = []relay.Header{
		{Name: "Content-Type", Value: "x"},
		{Name: "a", Value: ""},
		{Name: "id", Value: "forged"},
		{Name: "tracestate", Value: "k=v"},
		{Name: "webhook-id", Value: "x"},
		{Name: "ß", Value: "\x00"},
	}
	wantKind(t, sink.Send(within(t, generous), m), relay.KindDone, "")
	bare := newMessage("orders", "id-2")
	bare.ContentType, bare.Traceparent = "", "00-not a trace"
	wantKind(t, sink.Send(within(t, generous), bare), relay.KindDone, "")

	want := []string{
		"id=wire-1 type=order_placed schema_version=3 content-type=application/json traceparent=" + trace +
			" a= tracestate=k=v ß=\x00",
		"id=id-2 type=order_placed schema_version=1",
	}
	for i, r := range read(t, cluster.ListenAddrs(), "orders", 2) {
		var got []string
		for _, h := range r.Headers {
			got = append(got, h.Key+"="+string(h.Value))
		}
		if strings.Join(got, " ") != want[i] {
			t.Errorf("headers %q, want %q", got, want[i])
		}
	}
}
