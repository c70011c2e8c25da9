package kafka

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/outboxd/outboxd/relay"
)

// underWay is how many Sends the benchmark has in flight, as a relay has with a few batches.
const underWay = 2000

func benchCluster(b *testing.B) []string {
	return newCluster(b, kfake.SeedTopics(8, "bench"), kfake.BlackholeProduce()).ListenAddrs()
}

func benchMessage() *relay.Message {
	key := "order-1"
	m := newMessage("bench", "0190163d-8694-739b-aea5-966c26f8ad91")
	m.AggregateID, m.Payload = &key, make([]byte, 200)
	return m
}

// measure starts the clocks, of the processor too: on a busy machine its time says more.
func measure(b *testing.B) {
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu(b)
	b.Cleanup(func() { b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op") })
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkSend(b *testing.B) {
	sink := newSink(b, benchCluster(b), nil)
	m := benchMessage()
	if o := sink.Send(b.Context(), m); o.Kind != relay.KindDone {
		b.Fatalf("%+v", o)
	}
	ctx := within(b, DefaultTimeout)
	var bad atomic.Int64
	b.SetParallelism(underWay / runtime.GOMAXPROCS(0))
	measure(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if o := sink.Send(ctx, m); o.Kind != relay.KindDone {
				bad.Add(1)
			}
		}
	})
	if bad.Load() > 0 {
		b.Errorf("%d of %d were not done", bad.Load(), b.N)
	}
}

// BenchmarkBareProducer is the barest loop over the same producer, to compare with.
func BenchmarkBareProducer(b *testing.B) {
	brokers := benchCluster(b)
	settings, err := Config{Brokers: brokers}.withDefaults().settings()
	if err != nil {
		b.Fatal(err)
	}
	m := benchMessage()
	key, value := sarama.ByteEncoder(*m.AggregateID), sarama.ByteEncoder(m.Payload)
	headers := newHeaders(quiet(b)).of(m)
	producer, err := sarama.NewAsyncProducer(brokers, settings)
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	window := make(chan struct{}, underWay)
	go func() {
		for range producer.Successes() {
			<-window
		}
	}()
	measure(b)
	for range b.N {
		window <- struct{}{}
		producer.Input() <- &sarama.ProducerMessage{Topic: "bench", Key: key, Value: value, Headers: headers}
	}
	for range underWay {
		window <- struct{}{}
	}
}
