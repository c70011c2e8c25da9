package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// patience is how long the demo waits for what should come in a few seconds.
const patience = 40 * time.Second

// message reads an order's message.
func (s *story) message(ctx context.Context, number int) (dialect.Message, error) {
	m, _, err := s.db.Get(ctx, s.ids[number])
	return m, err
}

// wait waits until an order's message is as it should be.
func (s *story) wait(ctx context.Context, number int, is func(dialect.Message) bool) (m dialect.Message, err error) {
	err = s.until(ctx, func() (bool, error) {
		m, err = s.message(ctx, number)
		return err == nil && is(m), err
	})
	if errors.Is(err, errTooLong) {
		err = fmt.Errorf("the message of order %d is still %s after %s: %s", number, m.State, patience, value(m.LastError))
	}
	return m, err
}

// visited waits until there is such a request of an order.
func (s *story) visited(ctx context.Context, number int, is func(visit) bool) error {
	err := s.until(ctx, func() (bool, error) { return slices.ContainsFunc(s.receiver.visits(number), is), nil })
	if errors.Is(err, errTooLong) {
		err = fmt.Errorf("order %d has not come to the receiver after %s", number, patience)
	}
	return err
}

var errTooLong = errors.New("it takes too long")

// until looks again and again, as long as the relay lives.
func (s *story) until(ctx context.Context, there func() (bool, error)) error {
	for began := time.Now(); ; {
		ok, err := there()
		if ok || err != nil {
			return err
		}
		if err := s.relays.failed(); err != nil {
			return err
		}
		if time.Since(began) > patience {
			return errTooLong
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func isDone(m dialect.Message) bool   { return m.State == "done" }
func isFailed(m dialect.Message) bool { return m.State == "failed" }

// wasSent tells whether a send of the message came to an outcome.
func wasSent(m dialect.Message) bool {
	return m.Attempts > 0 && m.State != "in_flight" || m.Attempts > 1
}
