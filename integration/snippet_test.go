package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What has to arrive as it is: JSON that a parser on the way would write in other words, in characters of one to four bytes,
// with all that has to be escaped somewhere; and every byte.
const delicate = ` {"id": 12345678901234567890, "rate":0.1, "tenth": 0.10, "z": 1, "a": 1e2, "z": 2,
	"name": "Zoë's \"Café\" \\ \u0000 \/ %s ? :x $1 {} -- #", "price": "€ 😀"} ` + "\r\n"

// mild is what a latin1 session can say in its own characters, which some drivers then do.
const mild = `{"name":"Zoë's Café"}`

func everyByte() string {
	var all []byte
	for i := range 512 {
		all = append(all, byte(i), byte(i/2))
	}
	return string(all)
}

// TestSnippets runs what `outboxd snippet` says that is executed, with the rights of the role of applications. Each writes,
// in the transaction of a change of its own, a message that arrives with its bytes unchanged, also in a session with a character
// set of old; and none when the connection is cut before COMMIT; and where the message is refused, the change is not made.
func TestSnippets(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		s := newShop(t, e)
		s.relayTo(t, "shop", s.receiver, shop{webhook: "dedupe: 1h"})
		stacks := snippetStacks(t)
		for i, one := range snippetsOf(t, e) {
			stack, found := stacks[one.Name]
			if found != one.Executed {
				t.Errorf("outboxd snippet says executed: %v of %s, and a test that runs it: %v", one.Executed, one.Name, found)
			}
			if found {
				t.Run(one.Name, func(t *testing.T) {
					t.Parallel()
					s.runs(t, one.Name, stack, 100*(i+1))
				})
			}
		}
	})
}

// listedSnippet is what `outboxd snippet` says of one.
type listedSnippet struct {
	Name, Stack, Dialects string
	Executed              bool
}

func snippetsOf(t *testing.T, e engine) []listedSnippet {
	t.Helper()
	return slices.DeleteFunc(allSnippets(t), func(one listedSnippet) bool { return !strings.Contains(one.Dialects, e.driver) })
}

func allSnippets(t *testing.T) (list []listedSnippet) {
	t.Helper()
	stdout, stderr, code := outboxd(t, nil, "snippet", "--output", "json")
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != 0 {
		t.Fatalf("outboxd snippet: exit code %d, %v, %s", code, err, stderr)
	}
	return list
}

// snippetShop is a shop with orders to pay, a user with the role of applications, and a receiver of its messages.
type snippetShop struct {
	*database
	app      string // the URL for the application
	receiver *receiver
}

// newShop makes one. Its table refuses messages of orders that end in 13.
func newShop(t *testing.T, e engine) *snippetShop {
	t.Helper()
	s := &snippetShop{database: e.withRoles(t), receiver: newReceiver(t, always(reply{}))}
	s.app = s.as(t, "application")
	s.exec(t, "CREATE TABLE shop_order (id bigint PRIMARY KEY, paid boolean NOT NULL DEFAULT false)")
	if e.driver == "postgres" {
		s.exec(t, "GRANT SELECT, UPDATE ON shop_order TO outbox_application")
		s.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`)
		s.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW WHEN (NEW.aggregateid LIKE '%13') EXECUTE FUNCTION refuse()`)
	} else {
		rewrite(t, s.app, func(u *url.URL) { s.exec(t, "GRANT SELECT, UPDATE ON shop_order TO "+u.User.Username()) })
		s.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW
			IF NEW.aggregateid LIKE '%13' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF`)
	}
	s.greet(t)
	return s
}

// greet connects once with the password, by a driver that can do so without TLS: from then on MySQL lets in those that cannot.
func (s *snippetShop) greet(t *testing.T) {
	t.Helper()
	if s.driver != "mysql" {
		return
	}
	rewrite(t, s.app, func(u *url.URL) {
		password, _ := u.User.Password()
		db := openDatabase(t, s.engine, s.name, s.app, u.User.Username()+":"+password+"@tcp("+u.Host+")"+u.Path)
		if err := db.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// snippetOrder is an order that a snippet is to pay, and what becomes of that.
type snippetOrder struct {
	id       int
	port     string
	charset  string
	file     string
	payload  string
	wantPaid bool
}

// runs lets a snippet pay the orders from first on.
func (s *snippetShop) runs(t *testing.T, name string, stack snippetStack, first int) {
	stack.need(t)
	direct := portOf(t, s.app)
	p, proxied := s.proxy(t, s.app)
	utf8, latin1 := "UTF8", "LATIN1"
	payloads := []string{delicate, mild}
	if s.driver == "mysql" {
		utf8, latin1 = "utf8mb4", "latin1"
		payloads = append(payloads, everyByte()) // the column takes it
	}
	charsets := []string{utf8, latin1}
	if stack.oneCharset == s.driver {
		charsets = charsets[:1]
	}
	var orders []snippetOrder
	for _, charset := range charsets {
		for _, payload := range payloads {
			orders = append(orders, snippetOrder{id: first + len(orders), port: direct, charset: charset, payload: payload, wantPaid: true})
		}
	}
	orders = append(orders,
		snippetOrder{id: first + 13, port: direct, charset: utf8, payload: "{}"},
		snippetOrder{id: first + 14, port: portOf(t, proxied), charset: utf8, payload: "{}"})
	cut := p.cutOne(commits(toServer, `INSERT INTO \W?outbox`))

	folder := t.TempDir()
	for i, o := range orders {
		s.exec(t, "INSERT INTO shop_order (id) VALUES ("+strconv.Itoa(o.id)+")")
		orders[i].file = filepath.Join(folder, strconv.Itoa(o.id))
		if err := os.WriteFile(orders[i].file, []byte(o.payload), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := stack.pay(t, s, s.snippet(t, name, folder), orders)
	for _, o := range orders {
		s.expectOrder(t, o, said)
	}
	select {
	case <-cut.caught:
	default:
		t.Errorf("no COMMIT came by that could be cut; it says\n%s", said)
	}
	if t.Failed() {
		t.Logf("it says\n%s", said)
	}
}

// snippet writes what `outboxd snippet` prints into a folder, under the name of the file that it is.
func (s *snippetShop) snippet(t *testing.T, name, folder string) string {
	t.Helper()
	text, stderr, code := outboxd(t, nil, "snippet", name, "--dialect", s.driver)
	files, err := filepath.Glob(filepath.Join("../cmd/outboxd/snippets", s.driver, name, "*"))
	if code != 0 || err != nil || len(files) != 1 {
		t.Fatalf("outboxd snippet %s: exit code %d, %s, files %v", name, code, stderr, files)
	}
	path := filepath.Join(folder, filepath.Base(files[0]))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// expectOrder checks that an order is paid, and its payload arrived; or that neither it nor its message is there.
func (s *snippetShop) expectOrder(t *testing.T, o snippetOrder, said string) {
	t.Helper()
	paid := 0
	if o.wantPaid {
		paid = 1
	}
	s.expect(t, paid, fmt.Sprintf("SELECT count(*) FROM shop_order WHERE id = %d AND paid", o.id))
	ids := s.texts(t, fmt.Sprintf("SELECT id FROM outbox WHERE aggregateid = '%d' AND aggregatetype = 'orders' AND type = 'order_paid'", o.id))
	if saysPaid := strings.Contains("\n"+said, fmt.Sprintf("\n%d paid\n", o.id)); len(ids) != paid || saysPaid != o.wantPaid {
		t.Errorf("order %d: %d messages, want %d; it says that it is paid: %v", o.id, len(ids), paid, saysPaid)
	}
	for _, id := range ids {
		eventually(t, patience, func() error {
			if len(s.receiver.byKey()[id]) == 0 {
				return fmt.Errorf("the message of order %d did not arrive", o.id)
			}
			return nil
		})
		if got := s.receiver.byKey()[id][0].body; got != o.payload {
			t.Errorf("order %d, %s session: %q arrived of %q", o.id, o.charset, got, o.payload)
		}
	}
}

func portOf(t *testing.T, text string) (port string) {
	t.Helper()
	rewrite(t, text, func(u *url.URL) { port = u.Port() })
	return port
}

// lines are the orders as the programs in samples/snippets read them.
func lines(orders []snippetOrder) *bytes.Buffer {
	var all bytes.Buffer
	for _, o := range orders {
		fmt.Fprintln(&all, o.port, o.charset, o.id, o.file)
	}
	return &all
}
