package kafka

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
)

// TestMain lets sarama's circuit breaker sleep to the end of its 10 s; everything else has to be gone.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"))
}

// generous is how long a test waits for what should come at once.
const generous = 30 * time.Second

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "orders")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func quiet(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// newSink makes a Sink that publishes to {routing_key} and is closed at the end of the test.
func newSink(t testing.TB, brokers []string, change func(*Config)) *Sink {
	t.Helper()
	cfg := Config{Brokers: brokers, Topic: "{routing_key}"}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg = cfg.withDefaults()
	settings, err := cfg.settings()
	if err != nil {
		t.Fatal(err)
	}
	settings.Net.ReadTimeout = time.Second // for the tests in which a cluster does not answer
	settings.Metadata.Retry.Backoff = 20 * time.Millisecond
	settings.Producer.Retry.Backoff = 20 * time.Millisecond
	s, err := open(cfg, settings, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	return s
}

func newMessage(topic, id string) *relay.Message {
	return &relay.Message{
		Claim:       relay.Claim{ID: id, RoutingKey: topic, Type: "order_placed", SchemaVersion: 1},
		WireKey:     id,
		Payload:     []byte(`{"id":"` + id + `"}`),
		ContentType: "application/json",
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// wantKind fails the test unless the outcome is of that kind and, where they are given, has that class and words.
func wantKind(t testing.TB, o relay.Outcome, kind relay.Kind, class string, words ...string) {
	t.Helper()
	if o.Kind != kind || o.Class != class {
		t.Fatalf("outcome is %+v, want %s %s", o, kind, class)
	}
	for _, w := range words {
		if !strings.Contains(o.Err, w) {
			t.Errorf("err %q does not say %q", o.Err, w)
		}
	}
	if strings.ContainsAny(o.Err, "\n\r") {
		t.Errorf("err %q is more than a line", o.Err)
	}
}

// read returns the first n records of a topic, by a client that is not ours.
func read(t testing.TB, brokers []string, topic string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := within(t, generous)
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%d of %d records of %s: %v", len(records), n, topic, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

// realBrokers are those of a real cluster; without one the test is skipped, or fails in CI.
func realBrokers(t testing.TB) []string {
	t.Helper()
	const name = "OUTBOXD_TEST_KAFKA_BROKERS"
	brokers := os.Getenv(name)
	switch {
	case brokers != "":
		return strings.Split(brokers, ",")
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not set: this test needs a real Kafka", name)
	default:
		t.Skipf("%s is not set: this test needs a real Kafka", name)
	}
	return nil
}
