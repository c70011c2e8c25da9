package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/eapache/go-resiliency/breaker"

	"github.com/outboxd/outboxd/relay"
)

// How a producer is made, watched and ended.
const (
	firstPause = 100 * time.Millisecond // between attempts to connect
	lastPause  = 2 * time.Second
	logPause   = 10 * time.Second // between lines about the same trouble

	// silenceBound is longer than sarama takes to give up by itself: 24 s where no produce request is answered, 40 s with
	// metadata slow as well.
	silenceBound = 45 * time.Second
	closeGrace   = 30 * time.Second
)

// keeper keeps one producer at work: it makes it when it is first wanted, again and again until the cluster answers, and
// replaces it where it is of no more use.
type keeper struct {
	build   func() (*producer, error)
	alone   bool // its producer sends each record in a request of its own
	log     *slog.Logger
	silence time.Duration // after which a producer that returns nothing is hung
	grace   time.Duration // that a replaced producer has to end

	life context.Context // ends at close
	end  context.CancelFunc
	work sync.WaitGroup // connecting, and ending replaced producers

	mu         sync.Mutex
	current    *producer     // nil while there is none
	connecting bool          // a goroutine makes one
	known      chan struct{} // closed when current or trouble is set, while connecting
	trouble    error         // of the last attempt to connect
	told       time.Time     // when trouble was logged last

	causes sync.Map // by topic the error that kept a record from going out last
}

func newKeeper(log *slog.Logger, alone bool, build func() (*producer, error)) *keeper {
	k := &keeper{build: build, alone: alone, log: log, silence: silenceBound, grace: closeGrace}
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// send makes one try of r, at the next producer where one is replaced before it took r.
func (k *keeper) send(ctx context.Context, r *record) verdict {
	t := try{topic: r.msg.Topic, size: r.size, alone: k.alone}
	for {
		p, err := k.get(ctx)
		if err != nil {
			return judge(err, t)
		}
		err = p.send(ctx, r, &t)
		if errors.Is(err, errReplaced) {
			continue
		}
		v := k.explain(err, t, judge(err, t))
		if v.renew || err != nil && p.silent(k.silence) {
			k.replace(p, v.Err)
		}
		if err == nil {
			v.Result = r.place()
		}
		return v
	}
}

// explain puts the words of the tries that failed into the verdict of one that sarama did not make because of them: that a
// circuit breaker is open helps nobody.
func (k *keeper) explain(err error, t try, v verdict) verdict {
	if v.Kind != relay.KindUnsent {
		return v
	}
	if !errors.Is(err, breaker.ErrBreakerOpen) {
		k.causes.Store(t.topic, err)
	} else if cause, known := k.causes.Load(t.topic); known {
		before := judge(cause.(error), t)
		v.Class, v.Err = before.Class, before.Err
	}
	return v
}

// get returns the producer. While the first attempt to connect is under way it waits; after one that failed, it returns
// that one's error at once, until another succeeds.
func (k *keeper) get(ctx context.Context) (*producer, error) {
	for {
		p, known, trouble := k.look()
		if p != nil || trouble != nil {
			return p, trouble
		}
		select {
		case <-known:
		case <-k.life.Done():
			return nil, errClosed
		case <-ctx.Done():
			return nil, errNotTaken
		}
	}
}

// look tells how things are, and starts connecting where nobody does.
func (k *keeper) look() (p *producer, known <-chan struct{}, trouble error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Err() != nil {
		return nil, nil, errClosed
	}
	if k.current == nil && !k.connecting {
		k.connect()
	}
	return k.current, k.known, k.trouble
}

// connect starts making a producer. The caller holds mu.
func (k *keeper) connect() {
	k.connecting, k.known, k.trouble = true, make(chan struct{}), nil
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(lastPause),
		backoff.WithMaxElapsedTime(0))
	k.work.Go(func() {
		_ = backoff.Retry(func() error { return k.tried(k.build()) }, backoff.WithContext(pause, k.life))
	})
}

// tried takes in what an attempt to connect came to.
func (k *keeper) tried(p *producer, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && k.life.Err() != nil {
		k.retire(p, k.grace)
		return nil
	}
	if k.trouble == nil {
		close(k.known)
	}
	k.trouble = err
	if err == nil {
		k.current, k.connecting = p, false
		k.log.Info("connected to the Kafka cluster")
		return nil
	}
	if now := time.Now(); now.Sub(k.told) >= logPause {
		k.told = now
		k.log.Warn("the Kafka cluster cannot be used; trying again", "err", judge(err, try{}).Err)
	}
	return err
}

// replace lets p go and makes another.
func (k *keeper) replace(p *producer, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != p || k.life.Err() != nil {
		return
	}
	k.log.Warn("the Kafka producer is replaced", "err", why)
	k.current = nil
	k.connect()
	k.retire(p, k.grace)
}

// retire ends p beside what else is done. A producer that does not end is left behind with its goroutines; sarama has no
// way to break it off.
func (k *keeper) retire(p *producer, grace time.Duration) {
	k.work.Go(func() {
		if !p.close(grace) {
			k.log.Warn("a Kafka producer did not end and is left behind", "records", p.under.Load())
		}
	})
}

// close ends connecting and all producers, and returns when they ended or ctx did.
func (k *keeper) close(ctx context.Context) error {
	grace := k.grace
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(deadline)/3) // it is given twice, and something is left to end with
	}
	k.mu.Lock()
	k.end()
	if k.current != nil {
		k.retire(k.current, grace)
		k.current = nil
	}
	k.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		k.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kafka: a producer did not end in time: %w", ctx.Err())
	}
}
