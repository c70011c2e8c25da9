package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
	"github.com/outboxd/outboxd/relay"
)

func TestInspector(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		dialecttest.TestInspector(t, func(t *testing.T) dialecttest.Backend { return seen{s.newDatabase(t), t} })
	})
}

// seen is a database that people look at.
type seen struct {
	testDatabase
	t *testing.T
}

func (s seen) Open() dialecttest.DB   { return s.connect(s.t, dialect.Options{}) }
func (s seen) Reader() dialecttest.DB { return s.reader(s.t) }
func (s seen) SQL() *sqlx.DB          { return s.db }

// Counting looks over one connection, whose session counts what it reads, of temporary tables, too.
func (s seen) Counting() dialecttest.Counted {
	db := s.connect(s.t, dialect.Options{})
	db.keep.SetMaxOpenConns(1)
	return dialecttest.Counted{DB: db, Rows: func() (n int) {
		var counters []struct {
			Name string `json:"Variable_name"`
			N    int    `json:"Value"`
		}
		if err := db.keep.Select(&counters, "SHOW SESSION STATUS LIKE 'Handler_read%'"); err != nil {
			s.t.Fatal(err)
		}
		for _, c := range counters {
			n += c.N
		}
		return n
	}}
}

func TestSize(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) { dialecttest.TestSize(t, seen{s.newDatabase(t), t}) })
}

func (s seen) Forms() dialecttest.Forms {
	micros := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
	return dialecttest.Forms{
		Outbox:   "outbox",
		Now:      "UTC_TIMESTAMP(6)",
		Plus:     func(at string, d time.Duration) string { return at + " + INTERVAL " + micros(d) + " MICROSECOND" },
		Never:    "'9999-12-31'",
		Duration: micros,
		Array:    func(json string) string { return "'" + json + "'" },
		Held: func(ids ...string) string {
			return "(SELECT CONCAT('[', GROUP_CONCAT(seq), ']') FROM outbox WHERE id IN ('" + strings.Join(ids, "', '") + "'))"
		},
		Many:    insertMany,
		Analyze: "ANALYZE TABLE outbox",
		Value: func(column string, value any) any {
			if column == "dry_run" {
				return value == int64(1) // there are no booleans
			}
			return value
		},
		OtherIndex: "ALTER TABLE outbox DROP INDEX outbox_due, ADD INDEX outbox_due (state)",
		NoWrite:    dialect.Away, // Its driver gives up the connection, lest it is one to a replica.
	}
}

// ReadsAll looks for outbox under all of its aliases.
func (s seen) ReadsAll(a dialect.Audit) string {
	s.t.Helper()
	var plan []struct {
		Table  *string `db:"table"`
		Access *string `db:"type"`
	}
	if err := s.db.Unsafe().Select(&plan, "EXPLAIN FORMAT=TRADITIONAL "+a.SQL); err != nil {
		s.t.Errorf("%s: %v", a.Name, err)
	}
	for _, step := range plan {
		if step.Table != nil && slices.Contains([]string{"outbox", "o", "h", "final"}, *step.Table) && *step.Access == "ALL" {
			return "as " + *step.Table
		}
	}
	return ""
}

// insertMany is the INSERT of so many messages.
func insertMany(n int, columns, values string) string {
	numbers := make([]string, 1000)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	array := "'[" + strings.Join(numbers, ",") + "]'"
	return fmt.Sprintf(`INSERT INTO outbox (%s) SELECT %s FROM JSON_TABLE(%s, '$[*]' COLUMNS (n int PATH '$')) a
		JOIN JSON_TABLE(%s, '$[*]' COLUMNS (n int PATH '$')) b ON a.n * 1000 + b.n < %d`, columns, values, array, array, n)
}

// many inserts so many messages.
func (d testDatabase) many(t testing.TB, n int, columns, values string) {
	t.Helper()
	d.exec(t, insertMany(n, columns, values))
}

// A short result is stored in a fixed width, and nobody sees the blanks behind it.
func TestBlanksOfResults(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.exec(t, "INSERT INTO outbox (id, type, state, due_at, done_at, result) VALUES ('a', 'a', 'done', '9999-12-31', UTC_TIMESTAMP(6), RPAD('3@17', 64, ' '))")
		db := d.connect(t, dialect.Options{})
		m, _, err := db.Get(t.Context(), "a")
		if err != nil || m.Result == nil || *m.Result != "3@17" {
			t.Errorf("the message is %+v, %v", m, err)
		}
		page, err := db.List(t.Context(), relay.Filter{}, 1, "")
		if err != nil || len(page.Messages) != 1 || page.Messages[0].Result == nil || *page.Messages[0].Result != "3@17" {
			t.Errorf("the list is %+v, %v", page, err)
		}
	})
}

// What is done stands in the claim's index, too: a list of pending ones walks over a bounded part of it, and passes over
// the rest of a group at once.
func TestListPendingBehindDone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.many(t, 3*dialect.CountBound, "type, state, due_at, done_at", "'a', 'done', '9999-12-31', UTC_TIMESTAMP(6)")
		d.exec(t, "INSERT INTO outbox (type) VALUES ('a'), ('b')")
		d.exec(t, "UPDATE outbox SET lapses = 1, lease_id = -1 WHERE type = 'a' AND state = 'pending'")
		db := d.connect(t, dialect.Options{})
		var types []string
		pages, cursor := 0, ""
		for pages = 0; pages == 0 || cursor != ""; pages++ {
			page, err := db.List(t.Context(), relay.Filter{State: "pending"}, 100, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				types = append(types, m.Type)
			}
			cursor = page.Next
		}
		if !slices.Equal(types, []string{"a", "b"}) || pages != 2 {
			t.Errorf("%d pages have messages of the types %q, want 2 pages with a and b", pages, types)
		}
		page, err := db.List(t.Context(), relay.Filter{State: "pending", RoutingKey: "b"}, 100, "")
		if err != nil || len(page.Messages) != 1 || page.Next != "" {
			t.Errorf("of b %d messages and the cursor %q, %v", len(page.Messages), page.Next, err)
		}
	})
}

// Each walk reads a range of its index from a place on, and no more.
func TestWalksReadTheirIndex(t *testing.T) {
	t.Parallel()
	cases := []struct {
		filter relay.Filter
		oldest bool
		index  string
	}{
		{relay.Filter{}, false, "PRIMARY"},
		{relay.Filter{}, true, "PRIMARY"},
		{relay.Filter{State: relay.Pending}, false, "outbox_due"},
		{relay.Filter{State: relay.Pending, RoutingKey: "b"}, true, "outbox_due"},
		{relay.Filter{State: relay.Failed}, false, "outbox_failed"},
		{relay.Filter{State: relay.Failed}, true, "outbox_failed"},
		{relay.Filter{State: relay.InFlight}, false, "PRIMARY"},
		{relay.Filter{IDs: []string{"a"}}, false, "outbox_id_key"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.many(t, 2000, "type, state, due_at, done_at", "'a', 'done', '9999-12-31', UTC_TIMESTAMP(6)")
		d.many(t, 1000, "type", "'b'")
		d.exec(t, "ANALYZE TABLE outbox")
		db := d.connect(t, dialect.Options{})
		for _, c := range cases {
			w := walk(c.filter, c.oldest)
			args := w.Args
			for i, p := range w.Start {
				if c.filter.State == relay.Pending && i == 0 {
					p = "b" // in the middle
				}
				args = append(args, p)
			}
			text, err := render("EXPLAIN FORMAT = TRADITIONAL "+w.Query, d.schema)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := explain(t.Context(), db.keep, text, append(args, 10)...)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(plan, func(p planStep) bool { return p.index == c.index })
			whole := slices.ContainsFunc(plan, func(p planStep) bool {
				return p.access == "ALL" && (p.table == "o" || p.table == "i") || p.access == "index"
			})
			if !found || whole {
				t.Errorf("%+v: the plan is %+v, want %s", c.filter, plan, c.index)
			}
		}
	})
}
