package relaytest_test

import (
	"context"
	"crypto/sha256"
	"testing"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

func TestSinkLogsEverySend(t *testing.T) {
	t.Parallel()
	sink := &relaytest.Sink{AnswerFunc: func(ctx context.Context, s *relaytest.Sending) relay.Outcome {
		if s.Nth == 1 {
			return relaytest.LoseAnswer(ctx, s)
		}
		return relay.Done("3@1")
	}}
	m := &relay.Message{WireKey: "k", AggregateID: new("42"), Payload: []byte("x")}
	for _, want := range []relay.Kind{relay.KindUnknown, relay.KindDone} {
		if got := sink.Send(t.Context(), m); got.Kind != want {
			t.Fatalf("Send gave %s, want %s", got.Kind, want)
		}
		m.Attempts++
	}
	log := sink.Log()
	if len(log) != 2 || sink.Effects()["k"] != 2 {
		t.Fatalf("%d sends and effects %v, want 2 of each", len(log), sink.Effects())
	}
	for i, l := range log {
		if l.WireKey != "k" || *l.Key != "42" || l.Sum != sha256.Sum256([]byte("x")) || l.Attempt != i+1 || l.End.Before(l.Start) {
			t.Errorf("send %d is logged as %+v", i, l)
		}
	}
}

func TestSinkLogsWhatHangsAndWhatPanics(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	begun, sent := make(chan struct{}), make(chan relay.Outcome)
	sink := &relaytest.Sink{AnswerFunc: func(ctx context.Context, s *relaytest.Sending) relay.Outcome {
		close(begun)
		return relaytest.Hang(ctx, s)
	}}
	go func() { sent <- sink.Send(ctx, &relay.Message{}) }()
	<-begun
	if l := sink.Log()[0]; !l.End.IsZero() {
		t.Errorf("a send under way is logged as ended: %+v", l)
	}
	cancel()
	if got := <-sent; got.Kind != relay.KindUnknown {
		t.Errorf("a hanging send ended %s, want unknown", got.Kind)
	}

	sink = &relaytest.Sink{AnswerFunc: func(context.Context, *relaytest.Sending) relay.Outcome { panic("sink") }}
	func() {
		defer func() { _ = recover() }()
		sink.Send(t.Context(), &relay.Message{})
	}()
	if l := sink.Log()[0]; l.End.IsZero() || l.Applied || l.Outcome.Kind != "" {
		t.Errorf("a panic is logged as %+v", l)
	}
}

func TestSinkThatIsDeafEndsWhenReleased(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	release, sent := make(chan struct{}), make(chan relay.Outcome, 1)
	sink := &relaytest.Sink{AnswerFunc: relaytest.Deaf(release)}
	go func() { sent <- sink.Send(ctx, &relay.Message{}) }()
	if err := sink.Close(ctx); err != nil || !sink.Closed() {
		t.Errorf("Close gave %v, and Closed says %v", err, sink.Closed())
	}
	select {
	case got := <-sent:
		t.Errorf("the send ended %s before it was released", got.Kind)
	default:
	}
	close(release)
	if got := <-sent; got.Kind != relay.KindUnknown {
		t.Errorf("the send ended %s, want unknown", got.Kind)
	}
}
