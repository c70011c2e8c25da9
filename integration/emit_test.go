package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

const (
	tellTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	notFinal  = "SELECT count(*) FROM outbox WHERE state IN ('pending', 'in_flight')"
)

// TestTellTheApplication: messages become final in every way that there is, under relays that are killed at random moments.
// Each time one does, exactly one message says so, and goes where it is routed to. A replay that ends tells again.
func TestTellTheApplication(t *testing.T) {
	onEngines(t, tellTheApplication)
}

func tellTheApplication(t *testing.T, e engine) {
	d := newDesk(t, e)
	n := scale(400)
	for _, kind := range []string{"done", "rejected", "exhausted", "expired"} {
		d.order(t, n, kind, outbox.Message{Type: "charge_order"})
	}
	d.exec(t, "UPDATE outbox SET expires_at = {last year} WHERE aggregateid LIKE 'expired%'")
	d.order(t, n, "cancelled", outbox.Message{Type: "charge_later", Delay: 24 * time.Hour})

	for kills := range 3 { // so that no message can lapse more often than that
		before, _, _ := d.executor.figures()
		victim := d.start(t, fmt.Sprint("victim-", kills))
		eventually(t, patience, func() error {
			if came, _, _ := d.executor.figures(); came < before+10 && d.count(t, notFinal) > n {
				return fmt.Errorf("%d requests came after %d kills, want 10", came-before, kills)
			}
			return nil
		})
		select {
		case <-time.After(rand.N(300 * time.Millisecond)):
		case <-t.Context().Done():
		}
		victim.kill(t)
	}
	t.Logf("%d of %d messages were not final after the kills", d.count(t, notFinal), 5*n)
	d.start(t, "survivor")
	d.operate(t, "cancel", "--type", "charge_later")
	d.waitCount(t, 5*patience, 0, notFinal)
	for kind, end := range map[string]string{
		"done": "state = 'done'", "rejected": "reason = 'rejected'", "cancelled": "reason = 'cancelled'",
		"exhausted": "reason = 'exhausted' AND attempts = 2",
		"expired":   "reason IN ('expired', 'unknown')", // it may have lapsed in a relay that was killed before it looked
	} {
		d.expect(t, n, "SELECT count(*) FROM outbox WHERE routing_key = 'charges' AND aggregateid LIKE '"+kind+"%' AND "+end)
	}
	d.expectTold(t, 5*n)

	d.operate(t, "replay", "--state", "failed", "--reason", "rejected", "--force", "--note", "a test")
	d.waitCount(t, 5*patience, 0, notFinal)
	d.expect(t, n, "SELECT count(*) FROM outbox WHERE replays = 1 AND reason = 'rejected'")
	d.expectTold(t, 5*n+n)
}

// desk is an application that has its orders executed by one receiver, and is told of them at another.
type desk struct {
	*database
	env                []string // of relays, with the rights of one only
	executor, listener *receiver
}

func newDesk(t *testing.T, e engine) *desk {
	t.Helper()
	d := &desk{listener: newReceiver(t, always(reply{}))}
	d.executor = newReceiver(t, func(r *request) reply {
		switch {
		case strings.Contains(r.body, "rejected"):
			return reply{status: 422, takes: 20 * time.Millisecond}
		case strings.Contains(r.body, "exhausted"):
			return reply{status: 500, takes: 20 * time.Millisecond}
		}
		return reply{header: "Location: /charges/" + r.key[:8] + "\r\n", takes: 20 * time.Millisecond}
	})
	if e.proxy == nil { // no server, and no roles
		d.database = e.database(t)
		d.env = d.database.env()
	} else {
		d.database = e.withRoles(t)
		d.env = []string{"OUTBOXD_DATABASE_URL=" + d.as(t, "relay")}
	}
	return d
}

// order writes n messages that end in that way.
func (d *desk) order(t *testing.T, n int, kind string, m outbox.Message) {
	t.Helper()
	messages := make([]outbox.Message, n)
	for i := range messages {
		messages[i] = m
		messages[i].AggregateType, messages[i].AggregateID = "charges", fmt.Sprintf("%s-%d", kind, i)
		messages[i].Payload, messages[i].Traceparent = fmt.Appendf(nil, `{"end": %q}`, kind), tellTrace
	}
	d.write(t, messages...)
}

func (d *desk) start(t *testing.T, name string) *process {
	t.Helper()
	return startRelay(t, fmt.Sprintf(`
relay: {name: %s, lease: %s}
http: {listen: "off"}
destinations:
  executor: {webhook: {url: %q, dedupe: 24h}, width: 4, breaker: {run: 1000}}
  listener: {webhook: {url: %q, dedupe: 24h}}
routes:
  - {match: charges, to: executor, ordered: false, budget: 2, base: 10ms, emit: charge_result}
  - {match: charge_result, to: listener, ordered: false}
`, name, d.leaseOf(2*time.Second), d.executor.url(), d.listener.url()), d.env)
}

// told is what a message says of another one that is final.
type told struct {
	ID       string    `json:"id"`
	Type     string    `json:"type"`
	State    string    `json:"state"`
	Reason   *string   `json:"reason"`
	Result   *string   `json:"result"`
	Attempts int       `json:"attempts"`
	Replays  int       `json:"replays"`
	At       time.Time `json:"at"`
}

// expectTold: n messages tell, one of each life that ended, in the words of the table, and each came to the listener.
func (d *desk) expectTold(t *testing.T, n int) {
	t.Helper()
	ends := map[string]string{}
	for _, row := range d.rows(t, `SELECT id, replays, aggregateid, type, state, coalesce(reason, '-'), coalesce(result, '-'), attempts
		FROM outbox WHERE routing_key = 'charges'`) {
		if row[6] = strings.TrimRight(row[6], " "); row[6] == "" { // where no column grows from NULL
			row[6] = "-"
		}
		ends[row[0]+"/"+row[1]] = strings.Join(row, "|")
	}
	heard, wrong := d.listener.byKey(), 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= 5 {
			t.Errorf(format, args...)
		}
	}
	lives := map[string]bool{}
	rows := d.rows(t, `SELECT id, aggregateid, {payload}, coalesce(traceparent, ''), coalesce(aggregatetype, ''), schema_version, state
		FROM outbox WHERE type = 'charge_result'`)
	for _, row := range rows {
		what, err := readTold(row[2])
		life := fmt.Sprintf("%s/%d", what.ID, what.Replays)
		words := strings.Join([]string{
			what.ID, fmt.Sprint(what.Replays), row[1], what.Type, what.State, orDash(what.Reason), orDash(what.Result), fmt.Sprint(what.Attempts),
		}, "|")
		now := ends[life]
		if now == "" { // a life before the replay, which ended alike
			now = strings.Replace(ends[what.ID+"/1"], "|1|", "|0|", 1)
		}
		switch {
		case err != nil || words != now || lives[life]:
			fail("it is told (again: %t, error %v):\n%s, and the table says\n%s", lives[life], err, words, now)
		case row[3] != tellTrace || row[4] != "" || row[5] != "1" || row[6] != "done":
			fail("the message that tells of %s: %q", life, row)
		case len(heard[row[0]]) == 0 || heard[row[0]][0].body != row[2] || heard[row[0]][0].header.Get("traceparent") != tellTrace:
			fail("the message that tells of %s came to the listener as %+v", life, heard[row[0]])
		}
		lives[life] = true
		delete(heard, row[0])
	}
	if len(rows) != n || len(lives) != n || len(heard) != 0 || wrong > 5 {
		t.Errorf("%d messages tell of %d lives, want %d; %d messages came to the listener that do not tell; %d faults", len(rows), len(lives), n, len(heard), wrong)
	}
}

func readTold(payload string) (what told, err error) {
	in := json.NewDecoder(strings.NewReader(payload))
	in.DisallowUnknownFields()
	if err = in.Decode(&what); err == nil && time.Since(what.At).Abs() > time.Hour {
		err = errors.New("it became final at " + what.At.String())
	}
	return what, err
}

func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}
