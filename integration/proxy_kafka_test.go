package integration

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// newKafkaProxy stands in front of a broker: its address is what a client is given as broker. Kafka's clients go where
// the broker says that it is, so the proxy puts its own address into those answers. It can do so for one broker alone.
func newKafkaProxy(t *testing.T) *proxy {
	t.Helper()
	all := brokers(t)
	if len(all) != 1 {
		t.Skip("faults in front of Kafka need a cluster of one broker")
	}
	return newProxy(t, all[0], func(p *proxy) wire {
		return &kafkaWire{address: p.address(), asked: map[uint32]kafkaRequest{}}
	})
}

// requests matches a request by its name in Kafka's protocol, such as Produce or Metadata.
func requests(name string) func(part) bool {
	return func(one part) bool { return one.side == toServer && one.what == name }
}

// responses matches the answer to such a request: what it asked for has been done.
func responses(name string) func(part) bool {
	return func(one part) bool { return one.side == toClient && one.what == name }
}

type kafkaRequest struct{ key, version int16 }

// kafkaWire knows which request each answer of a connection belongs to.
type kafkaWire struct {
	address string

	mu    sync.Mutex
	asked map[uint32]kafkaRequest // by correlation id
}

func (w *kafkaWire) next(s side, in *bufio.Reader) (part, error) {
	data, err := kafkaFrame(in)
	if err != nil {
		return part{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == toServer {
		if len(data) < 12 {
			return part{}, errors.New("not the protocol of Kafka")
		}
		request := kafkaRequest{int16(binary.BigEndian.Uint16(data[4:])), int16(binary.BigEndian.Uint16(data[6:]))}
		w.asked[binary.BigEndian.Uint32(data[8:])] = request
		return part{side: toServer, what: kmsg.NameForKey(request.key), data: data}, nil
	}
	id := binary.BigEndian.Uint32(data[4:])
	request, ok := w.asked[id]
	if !ok {
		return part{}, fmt.Errorf("an answer to request %d, which was not asked", id)
	}
	delete(w.asked, id)
	data, err = w.redirect(request, data)
	return part{side: toClient, what: kmsg.NameForKey(request.key), data: data}, err
}

// kafkaFrame reads a request or an answer, with the length in front of it.
func kafkaFrame(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length < 4 || length > 1<<30 {
		return nil, errors.New("not the protocol of Kafka")
	}
	data := make([]byte, 4+length)
	_, err = io.ReadFull(in, data)
	return data, err
}

// redirect puts the proxy's address where an answer tells where a broker is.
func (w *kafkaWire) redirect(request kafkaRequest, data []byte) ([]byte, error) {
	host, portText, err := net.SplitHostPort(w.address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return nil, err
	}
	answer := kmsg.ResponseForKey(request.key)
	var place func()
	switch a := answer.(type) {
	case *kmsg.MetadataResponse:
		place = func() {
			for i := range a.Brokers {
				a.Brokers[i].Host, a.Brokers[i].Port = host, int32(port)
			}
		}
	case *kmsg.FindCoordinatorResponse:
		place = func() {
			a.Host, a.Port = host, int32(port)
			for i := range a.Coordinators {
				a.Coordinators[i].Host, a.Coordinators[i].Port = host, int32(port)
			}
		}
	case *kmsg.DescribeClusterResponse:
		place = func() {
			for i := range a.Brokers {
				a.Brokers[i].Host, a.Brokers[i].Port = host, int32(port)
			}
		}
	default:
		return data, nil
	}
	answer.SetVersion(request.version)
	body := 8 // length and correlation id
	if answer.IsFlexible() {
		body++ // and how many tags the header has: none
	}
	if err := answer.ReadFrom(data[body:]); err != nil {
		return nil, fmt.Errorf("read an answer to %s: %w", kmsg.NameForKey(request.key), err)
	}
	place()
	changed := answer.AppendTo(data[:body:body])
	binary.BigEndian.PutUint32(changed, uint32(len(changed)-4))
	return changed, nil
}
