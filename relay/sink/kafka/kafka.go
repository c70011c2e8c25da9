// Package kafka publishes messages to a Kafka cluster: idempotent, acknowledged by all replicas in sync, each message
// with its own outcome. Start reading at Sink.Send; codeRule says which error is which outcome.
package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"github.com/outboxd/outboxd/relay"
)

// Sink is a Kafka cluster as a destination. It connects when it is first used; a cluster that does not answer makes
// sends unsent until it does.
type Sink struct {
	topic     topic
	tombstone bool
	maxBytes  int
	timeout   time.Duration
	headers   *headers
	shared    *keeper // batches
	suspects  *keeper // one by one what was refused in a batch
}

var _ relay.Sink = (*Sink)(nil)

// New checks cfg, reads the files that it names, and makes a Sink. It asks no broker for anything.
func New(cfg Config, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	settings, err := cfg.settings()
	if err != nil {
		return nil, err
	}
	return open(cfg, settings, log)
}

// open makes a Sink of a checked cfg and sarama's settings.
func open(cfg Config, settings *sarama.Config, log *slog.Logger) (*Sink, error) {
	template, err := parseTopic(cfg.Topic)
	if err != nil {
		return nil, err
	}
	lone := alone(*settings)
	return &Sink{
		topic:     template,
		tombstone: cfg.TombstoneOnEmpty,
		maxBytes:  cfg.MaxMessageBytes,
		timeout:   cfg.Timeout,
		headers:   newHeaders(log),
		shared:    newKeeper(log, false, func() (*producer, error) { return newProducer(cfg.Brokers, *settings) }),
		suspects:  newKeeper(log, true, func() (*producer, error) { return newProducer(cfg.Brokers, *lone) }),
	}, nil
}

// Send publishes m and waits for its acknowledgement; the result is partition@offset. A broker that refuses a batch as
// too large or invalid says it of all messages in it: each of them goes again in a request of its own, and fails only if
// it is refused there. The payload of a message may be read for some seconds after a Send that came to unknown.
func (s *Sink) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	name, ok := s.topic.name(m)
	if !ok {
		return refused(relay.Rejected, classInvalid, fmt.Sprintf(
			"the message's topic would be %.260q, which Kafka takes for no topic's name: 1 to %d letters, digits, dots, underscores and hyphens",
			name, maxTopicLength))
	}
	r := s.newRecord(name, m)
	if r.size > s.maxBytes {
		return refused(relay.TooLarge, classTooLarge, fmt.Sprintf(
			"topic %q: %d bytes with key and headers, more than max_message_bytes of %d; send less, or raise it here and at the topic",
			name, r.size, s.maxBytes))
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	v := s.shared.send(ctx, r)
	if v.suspect {
		v = s.suspects.send(ctx, s.newRecord(name, m))
	}
	return v.Outcome
}

// within bounds a ctx that has no deadline.
func (s *Sink) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.timeout)
}

// Close ends the producers. What is left of them when ctx ends is left behind, with an error that says so.
func (s *Sink) Close(ctx context.Context) error {
	errs := make(chan error, 1)
	go func() { errs <- s.suspects.close(ctx) }()
	err := s.shared.close(ctx)
	if other := <-errs; err == nil {
		err = other
	}
	return err
}
