package kafka

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// errReplaced is of a record that the producer did not take, since it is being ended; another may.
var errReplaced = errors.New("its producer is being replaced")

// producer is one sarama producer and its connections. Sends leave their records in a queue that one goroutine moves to
// sarama: it costs a Send no wait, and nobody is in sarama's input when that is closed, which would panic.
type producer struct {
	client sarama.Client
	async  sarama.AsyncProducer
	wire   *wire
	made   time.Time

	mu     sync.Mutex
	queue  []*record
	closed bool          // nothing may be queued any more
	queued chan struct{} // of one place: the queue is not empty, or closed

	quit    chan struct{} // closed when nothing may be moved any more
	moved   chan struct{} // closed when the moving goroutine has ended
	drained chan struct{} // closed when sarama gave back all records

	under atomic.Int64 // records queued that did not come back
	heard atomic.Int64 // nanoseconds after made: when one came back last, or when the first went in
}

// newProducer connects. It can take as long as sarama's own time-outs allow.
func newProducer(brokers []string, settings sarama.Config) (*producer, error) {
	p := &producer{
		wire: newWire(settings.Net.DialTimeout), made: time.Now(),
		queued: make(chan struct{}, 1), quit: make(chan struct{}), moved: make(chan struct{}), drained: make(chan struct{}),
	}
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, p.wire
	var err error
	if p.client, err = sarama.NewClient(brokers, &settings); err != nil {
		return nil, reason(err, brokers[0], settings)
	}
	if p.async, err = sarama.NewAsyncProducerFromClient(p.client); err != nil {
		_ = p.client.Close()
		return nil, err
	}
	p.read()
	go p.move()
	return p, nil
}

// reason finds out why there is no broker where sarama 1.61.1 does not say: it drops the code of one that refuses our
// way to authenticate.
func reason(err error, addr string, settings sarama.Config) error {
	if !errors.Is(err, sarama.ErrOutOfBrokers) || errors.Unwrap(err) != nil {
		return err
	}
	broker := sarama.NewBroker(addr)
	if openErr := broker.Open(&settings); openErr != nil {
		return err
	}
	connected, why := broker.Connected()
	if connected {
		_ = broker.Close()
	}
	if why == nil {
		return err
	}
	return sarama.Wrap(sarama.ErrOutOfBrokers, why)
}

// read takes back what sarama returns, until it has closed both channels.
func (p *producer) read() {
	var both sync.WaitGroup
	both.Go(func() {
		for m := range p.async.Successes() {
			p.back(m, nil)
		}
	})
	both.Go(func() {
		for e := range p.async.Errors() {
			p.back(e.Msg, e.Err)
		}
	})
	go func() {
		both.Wait()
		close(p.drained)
	}()
}

func (p *producer) back(m *sarama.ProducerMessage, err error) {
	p.under.Add(-1)
	p.heard.Store(int64(time.Since(p.made)))
	m.Metadata.(*record).answer <- err
}

// send queues r and waits until it comes back or ctx ends, and tells in t how far it came. A nil error is the broker's
// acknowledgement.
func (p *producer) send(ctx context.Context, r *record, t *try) error {
	r.lost = p.wire.lost.Load()
	err := p.enqueue(r)
	if err == nil {
		select {
		case err = <-r.answer:
			t.sent = r.sent()
		case <-ctx.Done():
			err = errNoAnswer
			t.sent = r.leave()
		}
	}
	t.lost = p.wire.lost.Load() != r.lost
	t.open = p.wire.open.Load() > 0
	return err
}

func (p *producer) enqueue(r *record) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return errReplaced
	}
	p.queue = append(p.queue, r)
	first := len(p.queue) == 1
	if p.under.Add(1) == 1 {
		p.heard.Store(int64(time.Since(p.made)))
	}
	p.mu.Unlock()
	if first {
		p.wake()
	}
	return nil
}

func (p *producer) wake() {
	select {
	case p.queued <- struct{}{}:
	default:
	}
}

// move hands what is queued to sarama, in its order, until the queue is closed; the rest goes back unsent.
func (p *producer) move() {
	defer close(p.moved)
	var batch []*record
	for closed := false; !closed; {
		<-p.queued
		p.mu.Lock()
		batch, p.queue, closed = p.queue, batch[:0], p.closed
		p.mu.Unlock()
		for i, r := range batch {
			batch[i] = nil
			if r.state.Load() == gone {
				p.under.Add(-1)
				continue
			}
			select {
			case <-p.quit:
				p.back(&r.msg, errReplaced)
			case p.async.Input() <- &r.msg:
			}
		}
	}
}

// silent tells whether nothing came back for so long although something is under way.
func (p *producer) silent(bound time.Duration) bool {
	return p.under.Load() > 0 && time.Since(p.made)-time.Duration(p.heard.Load()) > bound
}

// close ends the producer: first as sarama wants it, with what is under way coming back, and where that takes longer
// than grace by closing the connections under it. It tells whether sarama came to an end within twice grace.
func (p *producer) close(grace time.Duration) bool {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.quit)
	p.wake()
	<-p.moved
	p.async.AsyncClose()
	ended := p.wait(grace)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = p.client.Close()
	}()
	if !ended {
		ended = p.wait(grace)
	}
	if ended {
		<-closed
	}
	return ended
}

func (p *producer) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.drained:
		return true
	case <-timer.C:
		return false
	}
}
