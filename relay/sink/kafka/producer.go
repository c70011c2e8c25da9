package kafka

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// producer is one sarama producer and its connections.
type producer struct {
	client sarama.Client
	async  sarama.AsyncProducer
	wire   *wire
	made   time.Time

	entry   sync.RWMutex  // held for reading while a Send hands over: sarama panics where its input is closed meanwhile
	quit    chan struct{} // closed when nobody may hand over any more
	drained chan struct{} // closed when sarama gave back all records

	under atomic.Int64 // records handed over or about to be, that did not come back
	heard atomic.Int64 // nanoseconds after made: when one came back last, or when the first went in
}

// newProducer connects. It can take as long as sarama's own time-outs allow.
func newProducer(brokers []string, settings sarama.Config) (*producer, error) {
	p := &producer{wire: newWire(settings.Net.DialTimeout), made: time.Now(),
		quit: make(chan struct{}), drained: make(chan struct{})}
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

// send hands r over and waits until sarama gives it back or ctx ends, and tells in t how far it came. A nil error is the
// broker's acknowledgement.
func (p *producer) send(ctx context.Context, r *record, t *try) error {
	err := p.handOver(ctx, r)
	if err == nil {
		select {
		case err = <-r.answer:
			t.sent = r.sent()
		case <-ctx.Done():
			err = errNoAnswer
			t.sent = r.leave()
		}
		t.lost = p.wire.lost.Load() != r.lost
	}
	t.open = p.wire.open.Load() > 0
	return err
}

func (p *producer) handOver(ctx context.Context, r *record) error {
	p.entry.RLock()
	defer p.entry.RUnlock()
	select {
	case <-p.quit:
		return errReplaced
	default:
	}
	r.lost = p.wire.lost.Load()
	if p.under.Add(1) == 1 {
		p.heard.Store(int64(time.Since(p.made)))
	}
	select {
	case p.async.Input() <- &r.msg:
		return nil
	case <-p.quit:
		p.under.Add(-1)
		return errReplaced
	case <-ctx.Done():
		p.under.Add(-1)
		return errNotTaken
	}
}

// silent tells whether nothing came back for so long although something is under way.
func (p *producer) silent(bound time.Duration) bool {
	return p.under.Load() > 0 && time.Since(p.made)-time.Duration(p.heard.Load()) > bound
}

// close ends the producer: first as sarama wants it, with what is under way coming back, and where that takes longer
// than grace by closing the connections under it. It tells whether sarama came to an end within twice grace.
func (p *producer) close(grace time.Duration) bool {
	close(p.quit)
	p.entry.Lock() // all Sends have left handOver; later ones find quit closed
	p.entry.Unlock()
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
