package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/outboxd/outboxd/outbox"
	"github.com/outboxd/outboxd/relay"
)

const writers = 8 // of the latency run

func kafkaResult(m *sarama.ProducerMessage) string {
	return strconv.Itoa(int(m.Partition)) + "@" + strconv.FormatInt(m.Offset, 10)
}

// clocked notes when each message was committed and when it was acknowledged, by one clock.
type clocked struct {
	relay.Sink
	mu        sync.Mutex
	committed map[string]time.Time
	acked     map[string]time.Time
}

func (c *clocked) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	o := c.Sink.Send(ctx, m)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Kind == relay.KindDone {
		c.acked[m.ID] = now
	}
	return o
}

func (c *clocked) commit(id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.committed[id] = at
}

// complete tells whether all that was committed was acknowledged.
func (c *clocked) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked) >= len(c.committed)
}

// latencies writes messages at an even rate, each in a transaction of its own, and prints how long they took from the
// COMMIT's return to the destination's acknowledgement.
func latencies(ctx context.Context, t *tables, o options, brokers []string) error {
	b := &broker{brokers: brokers}
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.close(ctx)
	if err := t.fill(ctx, 0, 0); err != nil {
		return err
	}
	c := &clocked{Sink: b.sink(), committed: map[string]time.Time{}, acked: map[string]time.Time{}}
	running, stop := context.WithCancel(ctx)
	var relays, apps sync.WaitGroup
	relays.Go(func() {
		if err := runRelay(running, t, c, false); err != nil {
			fmt.Println("bench:", err)
		}
	})
	u, err := measure(func() error {
		for range writers {
			apps.Go(func() {
				if err := write(ctx, t, o, c); err != nil {
					fmt.Println("bench:", err)
				}
			})
		}
		apps.Wait()
		return nil
	})
	for end := time.Now().Add(10 * time.Second); !c.complete() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	relays.Wait()
	if err != nil {
		return err
	}
	return report(c, o, u)
}

// write is one application.
func write(ctx context.Context, t *tables, o options, c *clocked) error {
	table := outbox.Table{Dialect: outbox.Postgres}
	tick := time.NewTicker(time.Second * writers / time.Duration(o.rate))
	defer tick.Stop()
	payload := make([]byte, o.payload)
	for i := range payload {
		payload[i] = 'x'
	}
	for end := time.Now().Add(o.latency); time.Now().Before(end); <-tick.C {
		tx, err := t.app.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		ids, err := table.Write(ctx, tx, outbox.Message{AggregateType: topic, AggregateID: "1", Type: "order_paid", Payload: payload})
		if err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		c.commit(ids[0], time.Now())
	}
	return nil
}

func report(c *clocked, o options, u usage) error {
	var took []time.Duration
	for id, at := range c.committed {
		if acked, ok := c.acked[id]; ok {
			took = append(took, max(0, acked.Sub(at)))
		}
	}
	if len(took) < len(c.committed) {
		return fmt.Errorf("%d of %d messages were not acknowledged", len(c.committed)-len(took), len(c.committed))
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	fmt.Printf("commit to acknowledgement by Kafka, %.0f messages/s (%d asked for): p50 %s, p99 %s, most %s; %.1f CPU s with the writers\n",
		float64(len(took))/u.wall.Seconds(), o.rate, at(0.5), at(0.99), at(1), u.cpu.Seconds())
	return nil
}
