package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/outboxd/outboxd/relay"
)

// TestConnectionLostInMidSend has a broker that takes records and drops the connection: they may be in its log.
func TestConnectionLostInMidSend(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	cluster.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, errors.New("dropped"), true
	})
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindUnknown, "reset")
}

// TestClusterLostInMidSend goes further: sarama's own retries find no broker any more, but the first try went out.
func TestClusterLostInMidSend(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	sink := newSink(t, cluster.ListenAddrs(), nil)
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
	reached, _ := hang(cluster, kmsg.Produce)
	go func() { <-reached; cluster.Close() }()
	o := sink.Send(within(t, generous), newMessage("orders", "b"))
	wantKind(t, o, relay.KindUnknown, o.Class)
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

// TestHungProducerIsReplaced is scenario S41. A producer that was silent for longer than the bound is replaced, one that
// was not is kept.
func TestHungProducerIsReplaced(t *testing.T) {
	t.Parallel()
	for bound, producers := range map[time.Duration]int{0: 2, silenceBound: 1} {
		cluster := newCluster(t)
		ids := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Observe: true, Count: -1})
		sink := newSink(t, cluster.ListenAddrs(), nil)
		sink.shared.silence, sink.shared.grace = bound, 50*time.Millisecond
		wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
		reached, release := hang(cluster, kmsg.Produce)
		ctx, cancel := context.WithCancel(within(t, generous))
		go func() { <-reached; cancel() }()
		wantKind(t, sink.Send(ctx, newMessage("orders", "b")), relay.KindUnknown, "timeout")
		release()
		wantKind(t, sink.Send(within(t, generous), newMessage("orders", "c")), relay.KindDone, "")
		if ids.Hits() != producers {
			t.Errorf("bound %s: %d producers were made, want %d", bound, ids.Hits(), producers)
		}
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
	cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.OutOfOrderSequenceNumber, Count: -1,
		When: func(kmsg.Request) bool { n++; return n%5 == 0 },
	})
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
