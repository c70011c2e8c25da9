package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// instanceEvery is how long what the outbox said of its instance holds. A relay that was refused begins within it once
// somebody gave the outbox to its instance.
const instanceEvery = time.Second

// ErrForeign says that the outbox belongs to another instance than the relay.
var ErrForeign = errors.New("the outbox belongs to another instance")

// owner is what this relay knows of the instance that the outbox belongs to. Safe for concurrent use.
type owner struct {
	asking chan struct{} // of 1, held by whoever asks the database

	mu      sync.Mutex
	doubts  int       // how often an answer was put in doubt
	at      time.Time // when it last said so; zero: it has to be asked before anything is done
	refused string    // why this relay may not work on it, in words; "": it may
}

// free tells of a call that a relay makes whoever the outbox belongs to: what it tells of itself, and what it owes to
// messages that it claimed before. Every other one waits until the outbox is known to be ours.
func free(call string) bool {
	switch call {
	case "instance", "beat", "peers", "leave", "load", "settle", "renew", "finish":
		return true
	}
	return false
}

// belongs gives an error unless the outbox belongs to the instance of this relay, or to none. It asks the database where
// that is not known for the last second, or where any call failed since: what answers next may be another database.
func (r *Relay) belongs(ctx context.Context) error {
	if fresh, refusal := r.owner.known(); fresh {
		return refusal
	}
	select {
	case r.owner.asking <- struct{}{}:
		defer func() { <-r.owner.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if fresh, refusal := r.owner.known(); fresh { // somebody asked meanwhile
		return refusal
	}
	for counts := false; !counts; {
		var err error
		if counts, err = r.askOwner(ctx); err != nil {
			return err
		}
	}
	_, refusal := r.owner.known()
	return refusal
}

// askOwner asks the database whose the outbox is. The answer does not count where a call failed meanwhile: it may be that of
// the database before.
func (r *Relay) askOwner(ctx context.Context) (counts bool, err error) {
	var of string
	asking := r.owner.ask()
	err = r.call(ctx, "instance", func(ctx context.Context) (err error) {
		of, err = r.cfg.Database.Instance(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	words := foreign(of, r.cfg.Instance)
	was, counts := r.owner.set(words, asking)
	switch {
	case !counts:
	case words != "" && r.faults.due("owner"):
		r.log.Error("nothing is sent", "why", words)
	case words == "" && was != "":
		r.log.Info("the outbox belongs to the instance of this relay now", "instance", of)
	}
	return counts, nil
}

// foreign says in words that an outbox of one instance is none for a relay of another; "" where it is.
func foreign(of, own string) string {
	switch {
	case of == own:
		return ""
	case own == "":
		return fmt.Sprintf("the outbox belongs to the instance %s, and the configuration of this relay names none: set instance: %s, "+
			"or where this is a copy, another name, and run outboxd instance set NAME --note WHY", of, of)
	}
	return fmt.Sprintf("the outbox belongs to the instance %s, and this relay to %s: where it is a copy that shall be sent from, run "+
		"outboxd instance set %s --note WHY", of, own, own)
}

// known tells whether the answer of belongs is known still, and what it is.
func (o *owner) known() (fresh bool, refusal error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused != "" {
		refusal = fmt.Errorf("%w: %s", ErrForeign, o.refused)
	}
	return !o.at.IsZero() && time.Since(o.at) < instanceEvery, refusal
}

// question is one to the database: when it was asked, and after how many doubts.
type question struct {
	at     time.Time
	doubts int
}

func (o *owner) ask() question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return question{time.Now(), o.doubts}
}

// set takes what the outbox answered, and returns what was known before. An answer that is older than the last doubt does
// not count.
func (o *owner) set(refused string, q question) (was string, counts bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q.doubts != o.doubts {
		return o.refused, false
	}
	was, o.refused, o.at = o.refused, refused, q.at
	return was, true
}

// doubt has the database asked again before anything is done.
func (o *owner) doubt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = time.Time{}
	o.doubts++
}

// why is the reason in words for which nothing is sent; "" where there is none, or nobody knows yet.
func (o *owner) why() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused
}

// serves tells whether this relay may work on the outbox, as far as it knows.
func (o *owner) serves() bool {
	fresh, refusal := o.known()
	return fresh && refusal == nil
}
