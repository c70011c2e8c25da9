package kafka

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/IBM/sarama"

	"github.com/outboxd/outboxd/relay"
)

// The states of a record: it waits, its bytes were put into a batch, its Send went away.
const (
	waiting int32 = iota
	batched
	gone
)

// unplaced stands in a record's offset until a broker gave it one.
const unplaced = -1

var errGone = errors.New("its send was given up")

// record is one try of one message on its way through sarama and back. It is the value's encoder as well, and by that
// the gate: sarama asks for the value when it puts the record into a batch for a broker. A record that was not asked for
// has not gone out, and once its Send went away it never will.
type record struct {
	msg    sarama.ProducerMessage
	key    sarama.ByteEncoder
	value  []byte
	size   int // as sarama counts it against MaxMessageBytes
	state  atomic.Int32
	lost   int64      // connections lost before it was handed over
	answer chan error // of one place: what became of it, nil if acknowledged
}

// newRecord makes the record of m: the key is aggregateid, where NULL stays nil, the value is the payload, and headers
// are those of conventions. The record shares the payload with m.
func (s *Sink) newRecord(name string, m *relay.Message) *record {
	r := &record{value: m.Payload, answer: make(chan error, 1)}
	r.msg.Topic, r.msg.Offset, r.msg.Metadata, r.msg.Value = name, unplaced, r, r
	if m.AggregateID != nil {
		r.key = append(sarama.ByteEncoder{}, *m.AggregateID...)
		r.msg.Key = &r.key
	}
	if r.value == nil && !s.tombstone {
		r.value = []byte{}
	}
	r.msg.Headers = s.headers.of(m)
	r.size = r.msg.ByteSize(2)
	return r
}

// Length implements sarama.Encoder.
func (r *record) Length() int { return len(r.value) }

// Encode implements sarama.Encoder: it lets the record through the gate.
func (r *record) Encode() ([]byte, error) {
	if r.state.CompareAndSwap(waiting, batched) || r.state.Load() == batched {
		return r.value, nil
	}
	return nil, errGone
}

// sent tells whether the record may have gone out.
func (r *record) sent() bool { return r.state.Load() == batched }

// leave is called when the Send goes away without an answer. It tells whether the record may have gone out.
func (r *record) leave() bool { return r.state.Swap(gone) == batched }

// place is where an acknowledged record is: partition@offset. A broker that says only that it had the record already
// leaves the offset out, as partition@-1.
func (r *record) place() string {
	b := strconv.AppendInt(make([]byte, 0, 24), int64(r.msg.Partition), 10)
	return string(strconv.AppendInt(append(b, '@'), r.msg.Offset, 10))
}
