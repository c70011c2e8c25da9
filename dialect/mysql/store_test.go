package mysql

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
func claim(t testing.TB, s *Store, quotas ...relay.Quota) []relay.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), testLeaseID(), 30*time.Second, quotas)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return claims
}

func claimIDs(claims []relay.Claim) []string {
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.ID
	}
	return ids
}

func settleDone(claims []relay.Claim) []relay.Settlement {
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("3@1234567"), Took: time.Millisecond})
	}
	return settlements
}

// fill inserts n due messages of a routing key with a payload of so many bytes, in few statements.
func (b backend) fill(t testing.TB, routingKey string, n, payload int) {
	t.Helper()
	const rows = 1000 // of one statement, the depth of recursion that both servers allow
	for ; n > 0; n -= rows {
		b.exec(t, `INSERT INTO outbox (aggregatetype, type, aggregateid, payload)
			WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?)
			SELECT ?, 'order_paid', n, REPEAT('x', ?) FROM g`, min(n, rows), routingKey, payload)
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden keeps what runs on a user's database readable: a reviewer sees SQL, not fragments of it.
func TestGolden(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("testdata", "sql")
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
			t.Errorf("%s is not the query of that name: run go test ./dialect/mysql -run Golden -update", file)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.golden.sql"))
	if err != nil || len(files) != len(queries) {
		t.Errorf("there are %d golden files (%v) and %d queries", len(files), err, len(queries))
	}
}

// TestQueriesNameTheSchema sees that no query reaches a table through the database in use.
func TestQueriesNameTheSchema(t *testing.T) {
	t.Parallel()
	for name, text := range sqlQueries() {
		rendered, err := render(text, "Shop-1")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, word := range strings.FieldsFunc(rendered, func(r rune) bool { return strings.ContainsRune(" \n(),;", r) }) {
			table, _, column := strings.Cut(word, ".") // of a table that is named with its database elsewhere
			if strings.HasPrefix(table, "outbox") && !column && !slices.Contains([]string{"outbox_due", "outbox_id_key"}, table) {
				t.Errorf("%s names %s without its database", name, word)
			}
		}
	}
}

// TestIDs sees that what is no id is refused by name, and never becomes a part of a statement.
func TestIDs(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		for _, id := range []string{"a.b", "ключ", "a'b", "a b"} {
			_, err := s.Claim(t.Context(), 1, time.Second, []relay.Quota{{RoutingKey: orders, ID: id, Limit: 1}})
			if want := fmt.Sprintf("message id %q has", id); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Claim of %q gives %v, want %s", id, err, want)
			}
		}
		twice := relay.Claim{ID: "7", Seq: 7, Lease: 1}
		if _, err := s.Settle(t.Context(), settleDone([]relay.Claim{twice, twice})); err == nil || !strings.Contains(err.Error(), "message 7 occurs twice") {
			t.Errorf("Settle of a message twice gives %v, want an error that names it", err)
		}
		// What an id is not by its letters, it is not by another alphabet's either.
		b.Insert(relaytest.Seed{ID: "Order-7", Type: orders})
		for _, id := range []string{"order-7", "Order-7-"} {
			if claims := claim(t, s, relay.Quota{RoutingKey: orders, ID: id, Limit: 1}); len(claims) > 0 {
				t.Errorf("Claim of %q gives message %s", id, claims[0].ID)
			}
		}
	})
}

// TestOneBadRowBlocksNoOther has rows by hand that no relay would write, and one that a trigger watches.
func TestOneBadRowBlocksNoOther(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		id := b.Insert(slices.Repeat([]relaytest.Seed{{Type: orders}}, 20)...)
		b.exec(t, "UPDATE outbox SET attempts = 2147483647 WHERE id = ?", id[6])
		b.exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW
			IF OLD.state = 'in_flight' AND OLD.id = '`+id[7]+`' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF`)
		b.exec(t, "UPDATE outbox SET created_at = '1001-01-01', unknown_since = '1001-01-01' WHERE id = ?", id[8])
		claims := claim(t, s, testQuota(20))
		if len(claims) != 20 || claims[8].Age < 200*365*24*time.Hour || claims[8].UnknownFor < 200*365*24*time.Hour {
			t.Fatalf("%d messages were claimed, and the old one is %+v", len(claims), claims[8])
		}
		settlements := settleDone(claims)
		settlements[19] = relay.Decide(relay.Try{Claim: claims[19], Outcome: relay.Outcome{Kind: relay.KindDone, Answer: "long"}})
		for range 2 {
			back, err := s.Settle(t.Context(), settlements)
			if err != nil || len(back) != 1 || back[0].Why != relay.Refused || !strings.Contains(back[0].Err.Error(), id[7]+": settle_done: ") {
				t.Errorf("Settle gives %v, %v, want the row that a trigger watches refused", back, err)
			}
		}
		var left []string
		b.read(&left, "SELECT id FROM outbox WHERE state <> 'done'")
		if !slices.Equal(left, id[7:8]) {
			t.Errorf("%v are not done, want %s alone", left, id[7])
		}
		if n := b.Row(id[6]).Attempts; n != 2147483647 {
			t.Errorf("%d attempts after the most that there can be", n)
		}
	})
}

// TestLongTextsFitTheServer settles a thousand messages whose texts are as long as they may be and grow sevenfold when they
// are escaped: 44 MB, where MariaDB takes 16.
func TestLongTextsFitTheServer(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		b.fill(t, orders, 1000, 20)
		claims := claim(t, s, testQuota(1000))
		settlements := make([]relay.Settlement, len(claims))
		for i, c := range claims {
			outcome := relay.Outcome{Kind: relay.KindRetry, Class: "http_5xx", Err: strings.Repeat("\x01", 3000), Answer: strings.Repeat("\x02", 5000)}
			settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: outcome, Policy: relay.Policy{Budget: 1}})
		}
		if back, err := s.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
			t.Fatalf("Settle gave back %d, %v", len(back), err)
		}
		var written []int
		b.read(&written, `SELECT COUNT(*) FROM outbox JOIN outbox_attempt ON message_id = id
			WHERE state = 'failed' AND last_error = REPEAT(CHAR(1), 2048) AND error = last_error AND answer = REPEAT(CHAR(2), 4096)`)
		if written[0] != len(claims) {
			t.Errorf("%d messages failed with their texts whole, want %d", written[0], len(claims))
		}
	})
}

// TestBeatShowsBreakers reads what people see of a relay's breakers.
func TestBeatShowsBreakers(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		s, other := b.store("a"), b.store("b")
		var again func()
		beat := func(s *Store, breakers ...relay.BreakerState) {
			t.Helper()
			again = func() {
				if err := s.Beat(t.Context(), relay.Beat{Host: "h", Version: "v", ConfigHash: "c", Destinations: []string{"kafka"}, Breakers: breakers}); err != nil {
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
				b.read(&got, "SELECT CONCAT_WS(' ', owner, name, value) FROM outbox_control WHERE kind = 'breaker' ORDER BY 1")
				if slices.Equal(got, want) {
					return
				}
				again()
			}
			t.Fatalf("outbox_control has %q, want %q", got, want)
		}
		ok := relay.BreakerState{Destination: "kafka", State: "ok"}
		beat(other, ok)
		beat(s, relay.BreakerState{Destination: "kafka", RoutingKey: "ключ", State: "open", Failures: 5, LastError: `timeout: "no" answer`},
			relay.BreakerState{Destination: "kafka", State: "ramp", Width: 3})
		seen(`a kafka {"state":"ramp","width":3,"failures":0,"last_error":""}`,
			`a kafka/ключ {"state":"open","width":0,"failures":5,"last_error":"timeout: \"no\" answer"}`,
			`b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
		ages := func(hours int) {
			b.exec(t, "UPDATE outbox_relay SET seen_at = UTC_TIMESTAMP(6) - INTERVAL ? HOUR WHERE name = 'b'", hours)
			b.exec(t, "UPDATE outbox_control SET updated_at = UTC_TIMESTAMP(6) - INTERVAL ? HOUR WHERE owner = 'b'", hours)
		}
		ages(23)
		beat(s, ok)
		seen(`a kafka {"state":"ok","width":0,"failures":0,"last_error":""}`, `b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
		if err := s.Leave(t.Context()); err != nil {
			t.Fatalf("Leave: %v", err)
		}
		again = func() {}
		seen(`b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
		ages(25)
		unlockRelay, unlockBreakers := b.LockRelay("b"), b.LockBreakers("b")
		beat(s, relay.BreakerState{Destination: "kafka", State: "open"})
		seen(`a kafka {"state":"open","width":0,"failures":0,"last_error":""}`, `b kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
		unlockRelay()
		unlockBreakers()
		beat(s, ok)
		seen(`a kafka {"state":"ok","width":0,"failures":0,"last_error":""}`)
		if relays := b.Relays(); !slices.Equal(relays, []string{"a"}) {
			t.Errorf("relays %q, want only the one that is alive", relays)
		}
	})
}
