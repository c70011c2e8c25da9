package postgres

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

const orders = "orders"

func testQuota(limit int) relay.Quota { return relay.Quota{RoutingKey: orders, Limit: limit} }

func testLeaseID() relay.LeaseID { return relay.LeaseID(1 + rand.Int64N(1<<62)) }

// claim takes what the quotas ask for, under a new lease.
func claim(t testing.TB, p *Store, quotas ...relay.Quota) []relay.Claim {
	t.Helper()
	claims, err := p.Claim(t.Context(), testLeaseID(), 30*time.Second, quotas)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return claims
}

func settleDone(claims []relay.Claim) []relay.Settlement {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("3@1234567"), Took: time.Millisecond})
	}
	return settlements
}

// fill inserts n due messages of a routing key with a payload of so many bytes, in one statement.
func (b postgresBackend) fill(t testing.TB, routingKey string, n, payload int) {
	t.Helper()
	b.exec(t, `INSERT INTO outbox (aggregatetype, type, aggregateid, payload)
		SELECT $1, 'order_paid', g::text, repeat('x', $3) FROM generate_series(1, $2) g`, routingKey, n, payload)
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden keeps what runs on a user's database readable: a reviewer sees SQL, not fragments of it.
func TestGolden(t *testing.T) {
	t.Parallel()
	folder := "testdata"
	queries := sqlQueries()
	for name, text := range queries {
		file := filepath.Join(folder, name+".golden.sql")
		text = strings.TrimSpace(text) + ";\n"
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(golden) != text {
			t.Errorf("%s is not the query of that name: run go test ./dialect -run Golden -update", file)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.golden.sql"))
	if err != nil || len(files) != len(queries) {
		t.Errorf("there are %d golden files (%v) and %d queries", len(files), err, len(queries))
	}
}

// TestQueriesNameTheSchema sees that no query reaches a table through the search_path.
func TestQueriesNameTheSchema(t *testing.T) {
	t.Parallel()
	for name, text := range sqlQueries() {
		rendered, err := render(text, "Shop-1")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, word := range strings.FieldsFunc(rendered, func(r rune) bool { return strings.ContainsRune(" \n(),;", r) }) {
			if strings.HasPrefix(word, "outbox") {
				t.Errorf("%s names %s without its schema", name, word)
			}
		}
	}
}

// TestIDs sees that what is no id is refused by name, and never becomes a part of a batch.
func TestIDs(t *testing.T) {
	t.Parallel()
	p := newServer(t, false).backend(t).postgres("a")
	for _, id := range []string{"", "7", "0190000000007000800000000000000a", "01900000-0000-7000-8000-00000000000A", "x1900000-0000-7000-8000-000000000000"} {
		want := fmt.Sprintf("message id %q is no UUID", id)
		_, err := p.Settle(t.Context(), settleDone([]relay.Claim{{ID: id, Lease: 1}}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Settle of %q gives %v, want %s", id, err, want)
		}
		if id == "" {
			continue // a quota without an id asks for a routing key
		}
		_, err = p.Claim(t.Context(), 1, time.Second, []relay.Quota{{RoutingKey: orders, ID: id, Limit: 1}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Claim of %q gives %v, want %s", id, err, want)
		}
	}
	twice := relay.Claim{ID: "01900000-0000-7000-8000-00000000000a", Lease: 1}
	if _, err := p.Settle(t.Context(), settleDone([]relay.Claim{twice, twice})); err == nil || !strings.Contains(err.Error(), twice.ID) {
		t.Errorf("Settle of a message twice gives %v, want an error that names it", err)
	}
}

// TestClaimAgainWithNothingDue asks again for a claim that took all that was due, as after an answer that was lost.
func TestClaimAgainWithNothingDue(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]func(id string) relay.Quota{
		"many": func(string) relay.Quota { return testQuota(10) },
		"one":  func(id string) relay.Quota { return relay.Quota{RoutingKey: orders, ID: id, Limit: 1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newServer(t, false).backend(t)
			p := b.postgres("a")
			id := b.Insert(relaytest.Seed{Type: orders})[0]
			lease := testLeaseID()
			for range 2 {
				claims, err := p.Claim(t.Context(), lease, time.Minute, []relay.Quota{quota(id)})
				if err != nil || len(claims) != 1 || claims[0].ID != id || claims[0].Lease != lease {
					t.Fatalf("Claim gave %+v, %v, want message %s under lease %d", claims, err, id, lease)
				}
			}
		})
	}
}

// TestSettlesTextsOfAnotherEncoding settles in a database that cannot hold what a destination said.
func TestSettlesTextsOfAnotherEncoding(t *testing.T) {
	t.Parallel()
	b := newServerIn(t, "LATIN1", false).backend(t)
	p := b.postgres("a")
	b.Insert(slices.Repeat([]relaytest.Seed{{Type: orders}}, 3)...)
	claims := claim(t, p, testQuota(3))
	settlements := []relay.Settlement{
		relay.Decide(relay.Try{Claim: claims[0], Outcome: relay.Done("Ω")}),
		relay.Decide(relay.Try{Claim: claims[1], Outcome: relay.Outcome{Kind: relay.KindDone, Answer: "Ω 語"}}),
		relay.Decide(relay.Try{Claim: claims[2], Outcome: relay.Retry("http_5xx", "Ω failed"), Policy: relay.Policy{Budget: 1}}),
	}
	if back, err := p.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
		t.Fatalf("Settle gave back %v, %v, want that all is written", back, err)
	}
	if r := b.Row(claims[0].ID); r.State != relay.Finished || r.Result != "?" {
		t.Errorf("the first is %s with result %q", r.State, r.Result)
	}
	if a := b.Attempts(claims[1].ID); len(a) != 1 || a[0].Answer != "? ?" {
		t.Errorf("the second has the attempts %+v", a)
	}
	if r := b.Row(claims[2].ID); r.State != relay.Failed || r.LastError != "? failed" || r.ErrorClass != "http_5xx" {
		t.Errorf("the third is %s with %q, class %q", r.State, r.LastError, r.ErrorClass)
	}
}

// TestOneBadRowBlocksNoOther has rows by hand that no relay would write, and one that a trigger watches.
func TestOneBadRowBlocksNoOther(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	id := b.Insert(slices.Repeat([]relaytest.Seed{{Type: orders}}, 20)...)
	b.exec(t, "UPDATE outbox SET attempts = 2147483647 WHERE id = $1", id[6])
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`)
	b.exec(t, "CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW WHEN (OLD.state = 'in_flight' AND OLD.id = '"+id[7]+"') EXECUTE FUNCTION refuse()")
	b.exec(t, "UPDATE outbox SET created_at = '0001-01-01', unknown_since = '0001-01-01' WHERE id = $1", id[8])
	claims := claim(t, p, testQuota(20))
	if len(claims) != 20 || claims[8].Age < 200*365*24*time.Hour || claims[8].UnknownFor < 200*365*24*time.Hour {
		t.Fatalf("%d messages were claimed, and the old one is %+v", len(claims), claims[8])
	}
	settlements := settleDone(claims)
	settlements[19] = relay.Decide(relay.Try{Claim: claims[19], Outcome: relay.Outcome{Kind: relay.KindDone, Answer: "long"}})
	for range 2 {
		back, err := p.Settle(t.Context(), settlements)
		if err != nil || len(back) != 1 || back[0].Why != relay.Refused || !strings.Contains(back[0].Err.Error(), id[7]+": settle_done: ") {
			t.Errorf("Settle gives %v, %v, want the row that a trigger watches refused", back, err)
		}
	}
	var inFlight []string
	b.read(&inFlight, "SELECT id FROM outbox WHERE state <> 'done'")
	if !slices.Equal(inFlight, id[7:8]) {
		t.Errorf("%v are not done, want %s alone", inFlight, id[7])
	}
	if n := b.Row(id[6]).Attempts; n != 2147483647 {
		t.Errorf("%d attempts after the most that there can be", n)
	}
}

// TestExpiresAtInfinity claims messages whose end no duration can name.
func TestExpiresAtInfinity(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	for at, far := range map[string]bool{"infinity": true, "294276-12-31": true, "-infinity": false} {
		b.exec(t, "INSERT INTO outbox (type, expires_at) VALUES ($1, $2)", orders, at)
		c := claim(t, p, testQuota(1))[0]
		if !c.Expires || far != (c.ExpiresIn > 24*time.Hour) || !far && c.ExpiresIn > 0 {
			t.Errorf("expires_at %s: the claim is %+v", at, c)
		}
	}
}

// TestBeatShowsBreakers reads what people see of a relay's breakers.
func TestBeatShowsBreakers(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p, other := b.postgres("a"), b.postgres("b")
	var again func()
	beat := func(p *Store, breakers ...relay.BreakerState) {
		t.Helper()
		again = func() {
			if err := p.Beat(t.Context(), relay.Beat{Host: "h", Version: "v", ConfigHash: "c", Breakers: breakers}); err != nil {
				t.Fatalf("Beat: %v", err)
			}
		}
		again()
	}
	// On a busy machine only one of the next beats may show them.
	seen := func(want ...string) {
		t.Helper()
		var got []string
		for range 20 {
			got = nil
			b.read(&got, "SELECT owner || ' ' || name || ' ' || value FROM outbox_control WHERE kind = 'breaker' ORDER BY 1")
			if slices.Equal(got, want) {
				return
			}
			again()
		}
		t.Fatalf("outbox_control has %q, want %q", got, want)
	}
	beat(other, relay.BreakerState{Destination: "kafka", State: "ok"})
	beat(p, relay.BreakerState{Destination: "kafka", RoutingKey: "orders", State: "open", Failures: 5, LastError: `timeout: "no" answer`},
		relay.BreakerState{Destination: "kafka", State: "ramp", Width: 3})
	seen(`a kafka {"state":"ramp","width":3,"failures":0,"last_error":""}`,
		`a kafka/orders {"state":"open","width":0,"failures":5,"last_error":"timeout: \"no\" answer"}`,
		`b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
	beat(p, relay.BreakerState{Destination: "kafka", State: "ok"})
	b.exec(t, "UPDATE outbox_relay SET seen_at = now() - interval '23 hours' WHERE name = 'b'")
	b.exec(t, "UPDATE outbox_control SET updated_at = now() - interval '23 hours' WHERE owner = 'b'")
	beat(p, relay.BreakerState{Destination: "kafka", State: "ok"})
	seen(`a kafka {"state":"ok","width":0,"failures":0,"last_error":""}`, `b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
	if err := p.Leave(t.Context()); err != nil {
		t.Fatalf("Leave: %v", err)
	}
	again = func() {}
	seen(`b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)

	b.exec(t, "UPDATE outbox_relay SET seen_at = now() - interval '25 hours' WHERE name = 'b'")
	b.exec(t, "UPDATE outbox_control SET updated_at = now() - interval '25 hours' WHERE owner = 'b'")
	unlockRelay, unlockBreakers := b.LockRelay("b"), b.LockBreakers("b")
	beat(p, relay.BreakerState{Destination: "kafka", State: "open"})
	seen(`a kafka {"state":"open","width":0,"failures":0,"last_error":""}`, `b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
	unlockRelay()
	unlockBreakers()
	beat(p, relay.BreakerState{Destination: "kafka", State: "ok"})
	seen(`a kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
	if relays := b.Relays(); !slices.Equal(relays, []string{"a"}) {
		t.Errorf("relays %q, want only the one that is alive", relays)
	}
}
