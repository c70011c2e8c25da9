package kafka

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/outboxd/outboxd/relay"
)

// freePort is a port on which nobody listens now.
func freePort(t testing.TB) (addr string, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String(), l.Addr().(*net.TCPAddr).Port
}

// untilDone sends until one is done, and returns what the others came to.
func untilDone(t testing.TB, s *Sink, topic string) (before []relay.Outcome) {
	t.Helper()
	ctx := within(t, generous)
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for i := 0; ; i++ {
		o := s.Send(ctx, newMessage(topic, strconv.Itoa(i)))
		if o.Kind == relay.KindDone {
			return before
		}
		before = append(before, o)
		if ctx.Err() != nil {
			t.Fatalf("nothing was done in %s; last %+v", generous, o)
		}
		<-pause.C
	}
}

func TestClusterThatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	addr, port := freePort(t)
	sink := newSink(t, []string{addr}, nil)
	for range 3 {
		o := sink.Send(within(t, generous), newMessage("orders", "a"))
		wantKind(t, o, relay.KindUnsent, "refused", "brokers")
		if !o.Wide {
			t.Errorf("%+v does not speak of the whole cluster", o)
		}
	}
	newCluster(t, kfake.Ports(port))
	for _, o := range untilDone(t, sink, "orders") {
		wantKind(t, o, relay.KindUnsent, o.Class)
	}
}

// TestClusterThatGoesAway has an outage: what was not under way when it began is unsent, so that it costs no attempt.
func TestClusterThatGoesAway(t *testing.T) {
	t.Parallel()
	addr, port := freePort(t)
	cluster := newCluster(t, kfake.Ports(port))
	sink := newSink(t, []string{addr}, nil)
	wantKind(t, sink.Send(within(t, generous), newMessage("orders", "a")), relay.KindDone, "")
	cluster.Close()
	// The first may still go into a connection whose end was not noticed.
	if o := sink.Send(within(t, generous), newMessage("orders", "b")); o.Kind != relay.KindUnknown && o.Kind != relay.KindUnsent {
		t.Errorf("the first after the end: %+v", o)
	}
	for i := range 5 {
		o := sink.Send(within(t, generous), newMessage("orders", strconv.Itoa(i)))
		if o.Kind != relay.KindUnsent || !o.Wide {
			t.Errorf("send %d into the outage: %+v, want unsent, of the whole cluster", i, o)
		}
	}
	newCluster(t, kfake.Ports(port))
	for _, o := range untilDone(t, sink, "orders") {
		if o.Kind == relay.KindFail {
			t.Errorf("after the outage: %+v", o)
		}
	}
}
