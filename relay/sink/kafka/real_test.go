package kafka

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/outboxd/outboxd/relay"
)

// newTopic creates a topic on a real cluster, to be deleted at the end, by a client that is not ours.
func newTopic(t testing.TB, brokers []string, partitions int32, configs map[string]string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	topic := fmt.Sprintf("outboxd-test-%d", time.Now().UnixNano())
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 20_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, partitions, 1
	for name, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		rt.Configs = append(rt.Configs, c)
	}
	create.Topics = append(create.Topics, rt)
	answer, err := create.RequestWith(within(t, generous), client)
	if err != nil {
		t.Fatal(err)
	}
	if code := answer.Topics[0].ErrorCode; code != 0 {
		t.Fatalf("creating %s: code %d", topic, code)
	}
	t.Cleanup(func() {
		remove := kmsg.NewPtrDeleteTopicsRequest()
		remove.TopicNames = []string{topic}
		named := kmsg.NewDeleteTopicsRequestTopic()
		named.Topic = &topic
		remove.Topics = append(remove.Topics, named)
		ctx, cancel := context.WithTimeout(context.Background(), generous)
		defer cancel()
		_, _ = remove.RequestWith(ctx, client)
	})
	return topic
}

// sendWhenReady sends m until the brokers know the topic, which they learn one after the other.
func sendWhenReady(t testing.TB, s *Sink, m *relay.Message) relay.Outcome {
	t.Helper()
	ctx := within(t, generous)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		o := s.Send(ctx, m)
		if o.Kind != relay.KindUnsent && o.Kind != relay.KindRetry || ctx.Err() != nil {
			return o
		}
		<-pause.C
	}
}

func TestRealSend(t *testing.T) {
	t.Parallel()
	brokers := realBrokers(t)
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := newTopic(t, brokers, 1, nil)
		sink := newSink(t, brokers, func(c *Config) { c.Compression = compression })
		every, key := make([]byte, 256), "order-1"
		for i := range every {
			every[i] = byte(i)
		}
		keyed, bare := newMessage(topic, "a"), newMessage(topic, "b")
		keyed.AggregateID, keyed.Payload = &key, every
		bare.Payload = nil
		o := sendWhenReady(t, sink, keyed)
		wantKind(t, o, relay.KindDone, "")
		if o.Result != "0@0" {
			t.Errorf("%s: result %q, want 0@0", compression, o.Result)
		}
		wantKind(t, sink.Send(within(t, generous), bare), relay.KindDone, "")
		records := read(t, brokers, topic, 2)
		if string(records[0].Value) != string(every) || string(records[0].Key) != key {
			t.Errorf("%s: read back key %q and value %q", compression, records[0].Key, records[0].Value)
		}
		if records[1].Key != nil || records[1].Value == nil || len(records[1].Value) != 0 {
			t.Errorf("%s: read back key %#v and value %#v, want nil and empty", compression, records[1].Key, records[1].Value)
		}
	}
}

func TestRealUnknownTopic(t *testing.T) {
	t.Parallel()
	brokers := realBrokers(t)
	sink := newSink(t, brokers, nil)
	topic := fmt.Sprintf("outboxd-nowhere-%d", time.Now().UnixNano())
	wantKind(t, sink.Send(within(t, generous), newMessage(topic, "a")), relay.KindUnsent, "not_found", topic)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	all := kmsg.NewPtrMetadataRequest()
	answer, err := all.RequestWith(within(t, generous), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range answer.Topics {
		if found.Topic != nil && *found.Topic == topic {
			t.Error("the topic was created by sending to it")
		}
	}
}

func TestRealRefusedBatch(t *testing.T) {
	t.Parallel()
	brokers := realBrokers(t)
	topic := newTopic(t, brokers, 1, map[string]string{"max.message.bytes": "10000"})
	sink := newSink(t, brokers, nil)
	wantKind(t, sendWhenReady(t, sink, newMessage(topic, "ready")), relay.KindDone, "")
	messages, large := batchWithOneTooLarge(topic)
	wantOnlyLargeFailed(t, sendAll(t, sink, messages), large)
}

func TestRealCompactedTopicWantsAKey(t *testing.T) {
	t.Parallel()
	brokers := realBrokers(t)
	topic := newTopic(t, brokers, 1, map[string]string{"cleanup.policy": "compact"})
	sink := newSink(t, brokers, nil)
	key := "k"
	keyed, bare := newMessage(topic, "a"), newMessage(topic, "b")
	keyed.AggregateID = &key
	wantKind(t, sendWhenReady(t, sink, keyed), relay.KindDone, "")
	outcomes := sendAll(t, sink, []*relay.Message{keyed, bare, keyed})
	wantKind(t, outcomes[0], relay.KindDone, "")
	wantKind(t, outcomes[1], relay.KindFail, "invalid", "key")
	wantKind(t, outcomes[2], relay.KindDone, "")
}

// TestRealPlaces sends many messages at once and finds each where its result says.
func TestRealPlaces(t *testing.T) {
	t.Parallel()
	brokers := realBrokers(t)
	topic := newTopic(t, brokers, 8, nil)
	sink := newSink(t, brokers, nil)
	wantKind(t, sendWhenReady(t, sink, newMessage(topic, "ready")), relay.KindDone, "")
	var messages []*relay.Message
	for i := range 3000 {
		m := newMessage(topic, strconv.Itoa(i))
		m.AggregateID = &m.WireKey
		messages = append(messages, m)
	}
	outcomes := sendAll(t, sink, messages)
	found := map[string]string{}
	for _, r := range read(t, brokers, topic, len(messages)+1) {
		found[string(r.Headers[0].Value)] = fmt.Sprintf("%d@%d", r.Partition, r.Offset)
	}
	for i, o := range outcomes {
		wantKind(t, o, relay.KindDone, "")
		if found[messages[i].WireKey] != o.Result {
			t.Fatalf("message %d was said to be at %q and is at %q", i, o.Result, found[messages[i].WireKey])
		}
	}
}
