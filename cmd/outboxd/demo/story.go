package demo

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/outboxd/outboxd/dialect"
)

// story is a demo on its way.
type story struct {
	page     page
	auto     bool
	in       *bufio.Reader
	place    place
	db       Database
	tables   tables
	receiver *receiver
	shop     shop
	relays   relays

	ids map[int]string // of the messages, by order
}

// tell tells it step by step.
func (s *story) tell(ctx context.Context) error {
	s.page.say("outboxd demo: a shop that commits and rolls back, a receiver over HTTP that charges its orders, and the relay\n" +
		"between them, which is killed on the way. All of it runs on this machine, for real.")
	fmt.Fprintln(s.page.out)
	s.page.line("database", "%s", s.place.words)
	s.page.line("receiver", "%s", s.receiver.url)
	s.page.line("relay", "this program again, with a lease of %s: outboxd run -c %s", s.place.lease(), s.relays.config)
	if s.receiver.forgetful {
		s.page.line("beware", "this receiver forgets its keys: what it is sent twice it charges twice, and the balance will tell")
	}
	for i, step := range []func(context.Context) error{
		s.takeOrders, s.notNow, s.answerLost, s.relayKilled, s.refuse, s.replay, s.closeTheBooks,
	} {
		if i > 0 {
			if err := s.enter(ctx); err != nil {
				return err
			}
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter waits for the reader. An input that is at its end waits for nobody.
func (s *story) enter(ctx context.Context) error {
	if s.auto {
		return ctx.Err()
	}
	fmt.Fprint(s.page.out, "\n  "+s.page.paint("2", "Press Enter to go on "))
	pressed := make(chan struct{})
	go func() {
		defer close(pressed)
		_, _ = s.in.ReadString('\n')
	}()
	select {
	case <-pressed:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *story) takeOrders(ctx context.Context) error {
	s.page.title("1  The shop takes ten orders")
	s.page.say("Each order goes into the shop's table, and the command to charge it into the outbox table, in one\n" +
		"transaction. So a command exists exactly where its order does. No relay runs yet, and nothing is lost by that.")
	s.ids = map[int]string{}
	var committed, rolledBack []string
	for _, o := range orders() {
		id, err := s.shop.take(ctx, o)
		if err != nil {
			return err
		}
		s.ids[o.Number] = id
		if o.trouble == "" {
			committed = append(committed, fmt.Sprint(o.Number))
		} else {
			rolledBack = append(rolledBack, fmt.Sprintf("%d (%s)", o.Number, o.trouble))
		}
	}
	waiting, err := s.tables.count(ctx, "SELECT count(*) FROM {outbox} WHERE state = 'pending'")
	if err != nil {
		return err
	}
	all, err := s.tables.count(ctx, "SELECT count(*) FROM {outbox}")
	if err != nil {
		return err
	}
	s.page.line("shop", "%d orders committed: %s", len(committed), strings.Join(committed, " "))
	s.page.line("shop", "%d rolled back: %s", len(rolledBack), strings.Join(rolledBack, ", "))
	s.page.line("outbox", "%d messages, %d of them pending", all, waiting)
	return nil
}

func (s *story) notNow(ctx context.Context) error {
	s.page.title("2  A relay starts; the receiver is overloaded for a moment")
	s.page.say("The relay sends all it finds, each message with its id as Idempotency-Key. Of order 103 the receiver says\n" +
		"\"not now\", and when to come back. That message waits so long; the others do not wait for it.")
	if err := s.startRelay("relay-1"); err != nil {
		return err
	}
	for _, number := range []int{101, 102, 108, 110} {
		if _, err := s.wait(ctx, number, isDone); err != nil {
			return err
		}
	}
	if _, err := s.wait(ctx, refused, isFailed); err != nil {
		return err
	}
	for _, number := range []int{overloaded, cutOff, killed} {
		if err := s.visited(ctx, number, func(visit) bool { return true }); err != nil {
			return err
		}
	}
	s.page.line("sent", "orders 101, 102, 108 and 110: answered %s, done", statuses(s.receiver, 101, 102, 108, 110))
	s.page.line("sent", "orders 104 and 105: no answer yet, and 107: refused; they have steps of their own")
	s.sent(overloaded, 0)
	s.page.line("outboxd", "pending; the receiver asked for %s, so it is not sent earlier", retryAfter)
	return s.untilDone(ctx, overloaded)
}

func (s *story) answerLost(ctx context.Context) error {
	s.page.title("3  The receiver does its work, and the connection breaks before its answer")
	s.page.say("Nobody on this side can know whether order 104 was charged. Not sending it again could lose it; sending it\n" +
		"again is safe, because it is the same request under the same key, for a receiver that remembers its keys.")
	close(s.receiver.goOn)
	if _, err := s.wait(ctx, cutOff, wasSent); err != nil {
		return err
	}
	s.sent(cutOff, 0)
	s.page.line("outboxd", "unknown, so pending: sent again within the time that the receiver remembers (dedupe: 24h)")
	return s.untilDone(ctx, cutOff)
}

func (s *story) relayKilled(ctx context.Context) error {
	s.page.title("4  The relay is killed in the middle of a send")
	s.page.say("Order 105 has been charged, its answer is on the way, and the relay gets a SIGKILL. Its claim was a lease\n" +
		"that it has to renew; as nobody does, another relay takes over what was in flight. A crash costs no attempt.")
	if err := s.visited(ctx, killed, func(v visit) bool { return v.charged }); err != nil {
		return err
	}
	s.sent(killed, 0)
	if err := s.relays.kill(); err != nil {
		return err
	}
	m, err := s.message(ctx, killed)
	if err != nil {
		return err
	}
	s.page.line("killed", "relay-1; its message is still %s", m.State)
	if err := s.startRelay("relay-2"); err != nil {
		return err
	}
	s.page.line("outboxd", "it finds the lease of relay-1, and watches whether it is renewed within its %s", s.place.lease())
	return s.untilDone(ctx, killed)
}

func (s *story) refuse(ctx context.Context) error {
	s.page.title("5  The receiver refuses an order for good")
	s.page.say("Order 107 is in Swiss francs, which the receiver does not know. No repeat would change that, so there is\n" +
		"none: the message failed at once, in step 2 already, for a person to look at. The others never waited for it.")
	m, err := s.wait(ctx, refused, isFailed)
	if err != nil {
		return err
	}
	s.sent(refused, 0)
	s.page.line("outboxd", "failed, reason %s, after %s", value(m.Reason), attempts(m))
	return nil
}

func (s *story) replay(ctx context.Context) error {
	s.page.title("6  The receiver is mended, and the order sent again")
	s.page.say("An operator replays what failed. It is the same row, but it gets a new key: under the old one a receiver\n" +
		"that remembers its keys would give its old answer, " + fmt.Sprint(http.StatusUnprocessableEntity) + ", without looking at the order again.")
	s.receiver.takeFrancs()
	s.page.line("shell", `outboxd replay --state failed --note "currency added" --yes`)
	printed, err := s.relays.command(ctx, "replay", "--state", "failed", "--note", "currency added", "--yes")
	if err != nil {
		return err
	}
	for line := range strings.Lines(printed) {
		s.page.line("", "%s", strings.TrimSpace(line))
	}
	return s.untilDone(ctx, refused)
}

func (s *story) closeTheBooks(ctx context.Context) error {
	s.page.title("7  The balance")
	s.page.say("Counted in the shop's table, in the outbox, in the receiver's table of charges and in its log of requests.")
	b, err := balanceOf(ctx, s.tables, s.receiver, len(orders()))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.page.out, "\n  %s\n", s.page.paint("1", b.String()))
	return b.holds()
}

func (s *story) startRelay(name string) error {
	err := s.relays.start(name)
	if err == nil {
		s.page.line("started", "%s, process %d", name, s.relays.running.cmd.Process.Pid)
	}
	return err
}

// untilDone waits until an order's message is done, and tells of its last send.
func (s *story) untilDone(ctx context.Context, number int) error {
	m, err := s.wait(ctx, number, isDone)
	if err != nil {
		return err
	}
	s.sent(number, len(s.receiver.visits(number))-1)
	s.page.line("outboxd", "done, after %s", attempts(m))
	return nil
}

// sent tells of the nth request of an order, and what was answered.
func (s *story) sent(number, n int) {
	visits := s.receiver.visits(number)
	v := visits[n]
	key := "key " + v.key
	switch {
	case n > 0 && v.key == visits[n-1].key:
		key = "the same key" + after(v, visits[n-1])
	case n > 0:
		key = "new " + key
	}
	crash := ""
	if number == killed && n > 0 && v.attempt == visits[n-1].attempt {
		crash = " (the crash was not charged)"
	}
	s.page.line("sent", "order %d, attempt %d%s, %s", number, v.attempt, crash, key)
	switch {
	case v.status == 0 && v.charged:
		s.page.line("receiver", "charged, no answer")
	case v.status == 0:
		s.page.line("receiver", "no answer")
	case v.repeat:
		s.page.line("receiver", "%d, nothing done: it has seen that key", v.status)
	case v.charged:
		s.page.line("receiver", "%d, charged: %s", v.status, v.answer)
	case v.status == http.StatusServiceUnavailable:
		s.page.line("receiver", "%d, %s, Retry-After: %.0f", v.status, v.answer, retryAfter.Seconds())
	default:
		s.page.line("receiver", "%d, %s", v.status, v.answer)
	}
}

// after says how long after another request one came.
func after(v, before visit) string {
	return fmt.Sprintf(", %.1f s after the first", v.came.Sub(before.ended).Seconds())
}

// sayWhatIsKept says how to look at it, and how to take it away.
func (s *story) sayWhatIsKept(outboxd, folder, config string) {
	s.page.title("Kept")
	for _, command := range []string{"status", "list", "get " + s.ids[killed] + " --attempts", "audit", "audit operations"} {
		s.page.line("look", "%s %s -c %s", outboxd, command, config)
	}
	if s.place.schema != "" {
		s.page.line("remove", "%s;", s.tables.dropStatement())
	}
	s.page.line("remove", "rm -r %s", folder)
}

func statuses(r *receiver, numbers ...int) string {
	var all []string
	for _, number := range numbers {
		visits := r.visits(number)
		all = append(all, fmt.Sprint(visits[len(visits)-1].status))
	}
	return strings.Join(all, ", ")
}

func attempts(m dialect.Message) string {
	if m.Attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", m.Attempts)
}

func value(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
