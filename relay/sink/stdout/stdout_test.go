package stdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMessage(id string) *relay.Message {
	return &relay.Message{
		Claim: relay.Claim{ID: id, Type: "order_placed", SchemaVersion: 1}, WireKey: id,
		ContentType: "application/json",
	}
}

func closed(t *testing.T, s *Sink) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	kind, key := "orders", "order-1"
	full := newMessage("id-1")
	full.WireKey, full.AggregateType, full.AggregateID, full.SchemaVersion = "wire-1", &kind, &key, 2
	full.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	full.CreatedAt = time.Date(2026, 11, 29, 23, 30, 0, 1000, time.FixedZone("east", 3600))
	full.Headers = []relay.Header{{Name: "a", Value: "<1>"}, {Name: "b", Value: "2"}}
	full.Payload = []byte("{\"html\":\"<&>\"}\n\u2028\x00")
	raw := newMessage("id-2")
	raw.Payload = []byte{0xff, 0}

	var out bytes.Buffer
	s := New(&out)
	for i, m := range []*relay.Message{full, raw, newMessage("id-3")} {
		if o := s.Send(t.Context(), m); o != relay.Done(strconv.Itoa(i+1)) {
			t.Errorf("message %d: %+v", i, o)
		}
	}
	closed(t, s)
	want := []string{
		`{"id":"wire-1","aggregatetype":"orders","aggregateid":"order-1","type":"order_placed","schema_version":2,` +
			`"content_type":"application/json","headers":{"a":"<1>","b":"2"},` +
			`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",` +
			`"created_at":"2026-11-29T22:30:00.000001Z","payload":"{\"html\":\"<&>\"}\n\u2028\u0000"}`,
		`{"id":"id-2","aggregatetype":null,"aggregateid":null,"type":"order_placed","schema_version":1,` +
			`"content_type":"application/json","headers":{},"traceparent":null,"created_at":"0001-01-01T00:00:00Z",` +
			`"payload":null,"payload_base64":"/wA="}`,
		`{"id":"id-3","aggregatetype":null,"aggregateid":null,"type":"order_placed","schema_version":1,` +
			`"content_type":"application/json","headers":{},"traceparent":null,"created_at":"0001-01-01T00:00:00Z",` +
			`"payload":null}`,
	}
	if got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestManySendersWriteWholeLines(t *testing.T) {
	t.Parallel()
	const n = 200
	var out bytes.Buffer
	s := New(&out)
	var senders sync.WaitGroup
	results := make([]relay.Outcome, n)
	for i := range n {
		senders.Go(func() { results[i] = s.Send(t.Context(), newMessage(fmt.Sprint("id-", i))) })
	}
	senders.Wait()
	closed(t, s)
	lines := strings.Split(out.String(), "\n")
	for i, o := range results {
		at, err := strconv.Atoi(o.Result)
		if o.Kind != relay.KindDone || err != nil {
			t.Fatalf("message %d: %+v", i, o)
		}
		var got struct{ ID string }
		if err := json.Unmarshal([]byte(lines[at-1]), &got); err != nil || got.ID != fmt.Sprint("id-", i) {
			t.Errorf("line %d is %q (%v), want id-%d", at, lines[at-1], err, i)
		}
	}
}

// faulty lets some bytes of each write through, by turns, and then fails.
type faulty struct {
	bytes.Buffer
	limits []int // -1: all
}

func (f *faulty) Write(p []byte) (int, error) {
	limit := f.limits[0]
	f.limits = f.limits[1:]
	if limit < 0 {
		return f.Buffer.Write(p)
	}
	n, _ := f.Buffer.Write(p[:limit])
	return n, errors.New("no space left on device")
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	f := &faulty{limits: []int{0, 5, -1}}
	s := New(f)
	kinds := []relay.Kind{relay.KindUnsent, relay.KindUnknown, relay.KindDone}
	for i, want := range kinds {
		o := s.Send(t.Context(), newMessage("id"))
		if o.Kind != want || o.Kind != relay.KindDone && !strings.Contains(o.Err, "no space left") {
			t.Errorf("write %d: %+v, want %s", i, o, want)
		}
		if want == relay.KindDone && o.Result != "2" {
			t.Errorf("result %q, want line 2: the torn one counts", o.Result)
		}
	}
	closed(t, s)
	lines := strings.Split(f.String(), "\n")
	if len(lines) != 3 || lines[0] != `{"id"` || !json.Valid([]byte(lines[1])) {
		t.Errorf("lines %q: the one after the torn line is not whole", lines)
	}
}

func TestBlockedWriter(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	s := New(w)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan relay.Outcome)
	go func() { first <- s.Send(ctx, newMessage("a")) }()
	if _, err := r.Read(make([]byte, 1)); err != nil { // the first line is under way, the writer blocked
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if o := s.Send(ended, newMessage("b")); o.Kind != relay.KindUnsent {
		t.Errorf("a line whose turn did not come: %+v, want unsent", o)
	}
	cancel()
	if o := <-first; o.Kind != relay.KindUnknown {
		t.Errorf("a line under way: %+v, want unknown", o)
	}
	if err := s.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close of a blocked writer: %v", err)
	}
	if o := s.Send(t.Context(), newMessage("c")); o.Kind != relay.KindUnsent {
		t.Errorf("after Close: %+v, want unsent", o)
	}
	_ = r.Close()
	<-s.ended
}
