package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCodesOverTheWire(t *testing.T) {
	t.Parallel()
	cases := []struct {
		code  *kerr.Error
		kind  relay.Kind
		class string
	}{
		{kerr.NotLeaderForPartition, relay.KindRetry, "broker"},
		{kerr.NotEnoughReplicas, relay.KindRetry, "broker"},
		{kerr.CorruptMessage, relay.KindRetry, "broker"},
		{kerr.UnknownTopicOrPartition, relay.KindUnsent, "not_found"},
		{kerr.TopicAuthorizationFailed, relay.KindUnsent, "auth"},
		{kerr.ClusterAuthorizationFailed, relay.KindUnsent, "auth"},
		{kerr.UnknownServerError, relay.KindUnknown, "broker"},
		{kerr.MessageTooLarge, relay.KindFail, "too_large"},
		{kerr.InvalidRecord, relay.KindFail, "invalid"},
	}
	for _, c := range cases {
		t.Run(c.code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: c.code, Count: -1})
			sink := newSink(t, cluster.ListenAddrs(), nil)
			o := sink.Send(within(t, generous), newMessage("orders", "a"))
			wantKind(t, o, c.kind, c.class, `topic "orders"`)
			fault.Remove()
			o = sink.Send(within(t, generous), newMessage("orders", "b"))
			wantKind(t, o, relay.KindDone, "")
		})
	}
}

// TestAppendedButNotEnoughReplicas has an answer that says neither yes nor no, and appends: sarama's own retry under the
// same sequence is dropped by the broker, so the record is there once.
func TestAppendedButNotEnoughReplicas(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 1 + retries})
	sink := newSink(t, cluster.ListenAddrs(), nil)
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindUnknown, "timeout")
	o := sink.Send(within(t, generous), newMessage("orders", "b"))
	if o.Result != "0@1" {
		t.Errorf("the next message is %+v, want it at 0@1, behind one copy of the first", o)
	}
}

// sendAll sends messages at once and returns what each came to.
func sendAll(t testing.TB, s *Sink, messages []*relay.Message) []relay.Outcome {
	t.Helper()
	outcomes := make([]relay.Outcome, len(messages))
	ctx := within(t, generous)
	var sends sync.WaitGroup
	for i, m := range messages {
		sends.Go(func() { outcomes[i] = s.Send(ctx, m) })
	}
	sends.Wait()
	return outcomes
}

// batchWithOneTooLarge is 50 small messages and a large one that no compression makes small.
func batchWithOneTooLarge(topic string) (messages []*relay.Message, large int) {
	for i := range 51 {
		messages = append(messages, newMessage(topic, strconv.Itoa(i)))
	}
	large = 25
	messages[large].Payload = make([]byte, 11_000)
	_, _ = rand.Read(messages[large].Payload)
	return messages, large
}

func wantOnlyLargeFailed(t *testing.T, outcomes []relay.Outcome, large int) {
	t.Helper()
	for i, o := range outcomes {
		switch {
		case i != large:
			wantKind(t, o, relay.KindDone, "")
		default:
			wantKind(t, o, relay.KindFail, "too_large", " bytes", "max.message.bytes")
			if o.Reason != relay.TooLarge {
				t.Errorf("reason %s, want too_large", o.Reason)
			}
		}
	}
}

// TestRefusedBatch is scenario S37: what a broker refuses in company is tried alone, and only what is refused there fails.
func TestRefusedBatch(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	const limit = "10000"
	if err := cluster.CreateTopic("narrow", 1, map[string]string{"max.message.bytes": limit}); err != nil {
		t.Fatal(err)
	}
	sink := newSink(t, cluster.ListenAddrs(), nil)
	messages, large := batchWithOneTooLarge("narrow")
	wantOnlyLargeFailed(t, sendAll(t, sink, messages), large)
}

func TestInnocentBatchIsDone(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.MessageTooLarge, kerr.InvalidRecord, kerr.RecordListTooLarge} {
		cluster := newCluster(t)
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: code}) // the first request only
		sink := newSink(t, cluster.ListenAddrs(), nil)
		for _, o := range sendAll(t, sink, []*relay.Message{newMessage("orders", "a"), newMessage("orders", "b")}) {
			wantKind(t, o, relay.KindDone, "")
		}
	}
}

func TestLargerThanOurLimitIsNotSent(t *testing.T) {
	t.Parallel()
	sink := newSink(t, []string{"127.0.0.1:1"}, func(c *Config) { c.MaxMessageBytes = 1000 })
	m := newMessage("orders", "a")
	m.Payload = make([]byte, 2000)
	o := sink.Send(t.Context(), m)
	wantKind(t, o, relay.KindFail, "too_large", "1000", "2")
	if o.Reason != relay.TooLarge {
		t.Errorf("reason %s, want too_large", o.Reason)
	}
}

func TestUnknownTopicIsUnsentAndNotCreated(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.AllowAutoTopicCreation())
	sink := newSink(t, cluster.ListenAddrs(), nil)
	o := sink.Send(within(t, generous), newMessage("nowhere", "a"))
	wantKind(t, o, relay.KindUnsent, "not_found", `topic "nowhere"`, "create the topic")
	if o.Wide {
		t.Error("an unknown topic speaks of the whole cluster")
	}
	if cluster.TopicInfo("nowhere") != nil {
		t.Error("the topic was created by asking for it")
	}
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "b")), relay.KindDone, "")
}

// TestLostSequence is scenario S39.
func TestLostSequence(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch} {
		cluster := newCluster(t)
		ids := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Observe: true, Count: -1})
		sink := newSink(t, cluster.ListenAddrs(), nil)
		wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: code})
		wantKind(t, sink.Send(within(t, generous), newMessage("orders", "b")), relay.KindRetry, "broker")
		wantKind(t, sink.Send(within(t, generous), newMessage("orders", "c")), relay.KindDone, "")
		if ids.Hits() != 2 {
			t.Errorf("%s: %d producers were made, want the first and one that replaced it", code.Message, ids.Hits())
		}
	}
}

// hang makes the cluster take requests of that kind without answering, until the returned function is called.
func hang(cluster *kfake.Cluster, key kmsg.Key) (reached <-chan struct{}, release func()) {
	seen := make(chan struct{}, 1)
	var mu sync.Mutex
	released := false
	cluster.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		select {
		case seen <- struct{}{}:
		default:
		}
		return nil, nil, !released
	})
	return seen, func() {
		mu.Lock()
		defer mu.Unlock()
		released = true
	}
}

// TestHungProducerIsReplaced is scenario S41.
func TestHungProducerIsReplaced(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	sink.shared.silence, sink.shared.grace = 0, 50*time.Millisecond
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
	reached, release := hang(cluster, kmsg.Produce)
	ctx, cancel := context.WithCancel(within(t, generous))
	go func() { <-reached; cancel() }()
	wantKind(t, sink.Send(ctx, newMessage("orders", "b")), relay.KindUnknown, "timeout")
	release()
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "c")), relay.KindDone, "")
}

func TestAnsweringProducerIsKept(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	ids := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Observe: true, Count: -1})
	sink := newSink(t, cluster.ListenAddrs(), nil)
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
	reached, release := hang(cluster, kmsg.Produce)
	ctx, cancel := context.WithCancel(within(t, generous))
	go func() { <-reached; cancel() }()
	wantKind(t, sink.Send(ctx, newMessage("orders", "b")), relay.KindUnknown, "timeout")
	release()
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "c")), relay.KindDone, "")
	if ids.Hits() != 1 {
		t.Errorf("%d producers were made, want one: it was silent for a moment only", ids.Hits())
	}
}

// TestGivenUpRecordNeverGoesOut holds a record in sarama by metadata that do not come, gives its send up as unsent, lets
// the metadata come, and sees that the record is not published behind our back.
func TestGivenUpRecordNeverGoesOut(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
	if err := cluster.CreateTopic("late", 1, nil); err != nil {
		t.Fatal(err)
	}
	reached, release := hang(cluster, kmsg.Metadata)
	ctx, cancel := context.WithCancel(within(t, generous))
	go func() { <-reached; cancel() }()
	o := sink.Send(ctx, newMessage("late", "b"))
	wantKind(t, o, relay.KindUnsent, "timeout")
	release()
	wantKind(t, sink.Send(within(t, generous), newMessage("late", "c")), relay.KindDone, "")
	if got := string(read(t, cluster.ListenAddrs(), "late", 1)[0].Headers[0].Value); got != "c" {
		t.Errorf("the first record is of message %q, want c: b was reported unsent", got)
	}
}

func TestCloseEndsInTimeAlthoughSaramaHangs(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
	reached, release := hang(cluster, kmsg.Produce)
	defer release()
	ctx, cancel := context.WithCancel(within(t, generous))
	go func() { <-reached; cancel() }()
	sink.Send(ctx, newMessage("orders", "b"))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := sink.Close(ended); err == nil {
		t.Error("Close left a producer behind and did not say so")
	}
	o := sink.Send(t.Context(), newMessage("orders", "c"))
	wantKind(t, o, relay.KindUnsent, "broker", "closed")
}

// TestReplacedUnderLoad replaces producers while many sends hand over: none panics, none waits for ever, and what is
// done is there exactly once.
func TestReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	var n int
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.OutOfOrderSequenceNumber, Count: -1,
		When: func(kmsg.Request) bool { n++; return n%5 == 0 }})
	var sends sync.WaitGroup
	var mu sync.Mutex
	done := map[string]string{} // place by id
	for w := range 20 {
		sends.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("%d-%d", w, i)
				o := sink.Send(within(t, generous), newMessage("orders", id))
				if o.Kind == relay.KindFail {
					t.Errorf("%s: %+v", id, o)
				}
				if o.Kind == relay.KindDone {
					mu.Lock()
					done[id] = o.Result
					mu.Unlock()
				}
			}
		})
	}
	sends.Wait()
	found := map[string]string{}
	for _, r := range read(t, cluster.ListenAddrs(), "orders", len(done)) {
		found[string(r.Headers[0].Value)] = fmt.Sprintf("%d@%d", r.Partition, r.Offset)
	}
	for id, place := range done {
		if found[id] != place {
			t.Errorf("%s was said to be at %s and is at %q", id, place, found[id])
		}
	}
}
