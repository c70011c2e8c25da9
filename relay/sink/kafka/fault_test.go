package kafka

import (
	"crypto/rand"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/outboxd/outboxd/relay"
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
	if wantKind(t, o, relay.KindFail, "too_large", "1000", "2"); !o.Ours {
		t.Errorf("nothing went out: %+v", o)
	}
	if o.Reason != relay.TooLarge {
		t.Errorf("reason %s, want too_large", o.Reason)
	}
}

func TestUnknownTopicIsUnsentAndNotCreated(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.AllowAutoTopicCreation())
	sink := newSink(t, cluster.ListenAddrs(), nil)
	for range 6 { // sarama asks three times and then refuses for a while, without a word about why
		o := sink.Send(within(t, generous), newMessage("nowhere", "a"))
		wantKind(t, o, relay.KindUnsent, "not_found", `topic "nowhere"`, "create the topic")
		if o.Wide {
			t.Errorf("%+v: want it not of the whole cluster", o)
		}
	}
	if cluster.TopicInfo("nowhere") != nil {
		t.Error("the topic was created by asking for it")
	}
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "b")), relay.KindDone, "")
}
