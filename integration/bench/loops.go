package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/sink/kafka"
)

const (
	batch   = 500 // as the relay claims
	workers = 2   // of the bare loop
	width   = 2000
	lease   = 30 * time.Second
	topic   = "bench"
)

// target is a destination, for the relay and for the bare loop.
type target interface {
	name() string
	open(ctx context.Context) error
	sink() relay.Sink
	bare(messages []relay.Message) []string // sends all and returns what each was acknowledged with
	close(ctx context.Context) error
}

// null acknowledges at once.
type null struct{}

func (null) name() string                { return "null destination" }
func (null) open(context.Context) error  { return nil }
func (null) close(context.Context) error { return nil }
func (null) sink() relay.Sink            { return null{} }
func (null) bare(messages []relay.Message) []string {
	return make([]string, len(messages))
}

func (null) Send(context.Context, *relay.Message) relay.Outcome { return relay.Done("") }
func (null) Close(context.Context) error                        { return nil }

// broker is Kafka: our sink for the relay, and for the bare loop a producer with the same settings, a batch at a time.
type broker struct {
	brokers  []string
	producer sarama.SyncProducer
}

func (b *broker) name() string { return "Kafka" }

func (b *broker) open(context.Context) error {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Idempotent, config.Net.MaxOpenRequests = true, 1
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Compression = sarama.CompressionLZ4
	config.Producer.Partitioner = sarama.NewMurmur2Partitioner
	config.Producer.Return.Successes = true
	config.Producer.Flush.Frequency, config.Producer.Flush.Messages = 2*time.Millisecond, batch
	admin, err := sarama.NewClusterAdmin(b.brokers, config)
	if err != nil {
		return err
	}
	defer admin.Close()
	err = admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 8, ReplicationFactor: 1}, false)
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		return err
	}
	b.producer, err = sarama.NewSyncProducer(b.brokers, config)
	return err
}

func (b *broker) close(context.Context) error { return b.producer.Close() }

func (b *broker) sink() relay.Sink {
	s, err := kafka.New(kafka.Config{Brokers: b.brokers, Topic: topic}, quiet())
	if err != nil {
		panic(err)
	}
	return s
}

func (b *broker) bare(messages []relay.Message) []string {
	out := make([]*sarama.ProducerMessage, len(messages))
	for i := range messages {
		m := &messages[i]
		out[i] = &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(*m.AggregateID), Value: sarama.ByteEncoder(m.Payload),
			Headers: []sarama.RecordHeader{{Key: []byte("id"), Value: []byte(m.WireKey)}, {Key: []byte("type"), Value: []byte(m.Type)}},
		}
	}
	if err := b.producer.SendMessages(out); err != nil {
		panic(err)
	}
	results := make([]string, len(out))
	for i, m := range out {
		results[i] = kafkaResult(m)
	}
	return results
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// drainBare is the barest loop: claim, load, send, settle, finish, in as many workers as the machine bears. It decides
// nothing, renews nothing and watches nothing.
func drainBare(ctx context.Context, t *tables, to target) error {
	store, err := t.db.Store("bare", "", lease)
	if err != nil {
		return err
	}
	defer store.Close()
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	var id atomic.Int64
	for range workers {
		group.Go(func() {
			for {
				n, err := bareOnce(ctx, store, relay.LeaseID(id.Add(1)), to)
				if err != nil {
					failed.Store(&err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func bareOnce(ctx context.Context, store relay.Store, id relay.LeaseID, to target) (int, error) {
	claims, err := store.Claim(ctx, id, lease, []relay.Quota{{RoutingKey: topic, Limit: batch}})
	if err != nil || len(claims) == 0 {
		return 0, err
	}
	messages, err := store.Load(ctx, claims)
	if err != nil {
		return 0, err
	}
	results := to.bare(messages)
	settlements := make([]relay.Settlement, len(messages))
	for i := range messages {
		settlements[i] = relay.Decide(relay.Try{Claim: messages[i].Claim, Outcome: relay.Done(results[i])})
	}
	if _, err := store.Settle(ctx, settlements); err != nil {
		return 0, err
	}
	return len(claims), store.Finish(ctx, []relay.LeaseID{id})
}

// drainRelay is the whole relay, with all that it does beside.
func drainRelay(ctx context.Context, t *tables, to target) error {
	return runRelay(ctx, t, to.sink(), true)
}

// runRelay runs a relay until ctx ends, or with once until nothing is left.
func runRelay(ctx context.Context, t *tables, sink relay.Sink, once bool) error {
	store, err := t.db.Store("relay", "", lease)
	if err != nil {
		return err
	}
	defer store.Close()
	r, err := relay.New(relay.Config{
		Name: "relay", Database: store, Lease: lease, Once: once, Log: quiet(),
		Destinations: []relay.Destination{{Name: "bench", Sink: sink, Width: width, PerKey: true}},
		Routes:       []relay.Route{{Match: topic, To: "bench"}},
	})
	if err != nil {
		return err
	}
	r.Run(ctx)
	return nil
}
