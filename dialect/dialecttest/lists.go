package dialecttest

import (
	"errors"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

func testList(t *testing.T, _ Backend, db DB) {
	halfAnHourAgo := time.Now().Add(-30 * time.Minute)
	cases := []struct {
		filter relay.Filter
		want   string // last digits of the ids
	}{
		{relay.Filter{}, "a987654321"},
		{relay.Filter{State: "pending"}, "13452"}, // routing key, lapses, due_at
		{relay.Filter{State: "in_flight"}, "6"},
		{relay.Filter{State: "failed"}, "89"},
		{relay.Filter{State: "failed", Unresolved: true}, "8"},
		{relay.Filter{State: "pending", Unresolved: true}, "13452"},
		{relay.Filter{Unresolved: true}, "a87654321"},
		{relay.Filter{State: "done"}, "a"},
		{relay.Filter{Type: "mail"}, "a"},
		{relay.Filter{RoutingKey: "orders", Type: "paid"}, "987654321"},
		{relay.Filter{State: "pending", RoutingKey: "orders", Type: "paid"}, "13452"},
		{relay.Filter{State: "pending", RoutingKey: "ORDERS"}, ""},
		{relay.Filter{State: "pending", RoutingKey: "mail"}, ""},
		{relay.Filter{State: "failed", Type: "other"}, ""},
		{relay.Filter{IDs: []string{ID("4"), ID("8"), ID("1"), ID("f")}}, "148"},
		{relay.Filter{IDs: []string{ID("4"), ID("8")}, State: "failed"}, "8"},
		{relay.Filter{Key: "3"}, "3"},
		{relay.Filter{Reason: "cancelled"}, "9"},
		{relay.Filter{ErrorClass: "http_5xx"}, "4"},
		{relay.Filter{SchemaVersion: 2}, ""},
		{relay.Filter{Routes: []relay.RouteRule{{Match: "mail", Takes: true}, {Match: "*"}}}, "a"},
		{relay.Filter{Routes: []relay.RouteRule{{Match: "mail"}, {Match: "*", Takes: true}}}, "987654321"},
		{relay.Filter{State: "pending", Routes: []relay.RouteRule{{Match: "ord*", Takes: true}}}, "13452"},
		{relay.Filter{Routes: []relay.RouteRule{{Match: "ord%", Takes: true}, {Match: "ORD*", Takes: true}, {Match: "order", Takes: true}}}, ""},
		{relay.Filter{State: "failed", Until: &halfAnHourAgo}, "9"},
		{relay.Filter{State: "failed", Since: &halfAnHourAgo}, "8"},
	}
	for _, c := range cases {
		for _, limit := range []int{1, 2, 3, 10} {
			if got := listAll(t, db, c.filter, limit); got != c.want {
				t.Errorf("%+v, %d at a time: %s, want %s", c.filter, limit, got, c.want)
			}
		}
	}
}

// listAll is the last digits of all ids of a list, page by page.
func listAll(t *testing.T, db DB, filter relay.Filter, limit int) (digits string) {
	t.Helper()
	cursor := ""
	for pages := 0; pages == 0 || cursor != ""; pages++ {
		page, err := db.List(t.Context(), filter, limit, cursor)
		if err != nil {
			t.Fatalf("%+v: %v: %v", filter, err, errors.Unwrap(err))
		}
		if len(page.Messages) > limit || pages > 10 {
			t.Fatalf("%+v: a page of %d, the %d. page", filter, len(page.Messages), pages)
		}
		for _, m := range page.Messages {
			digits += m.ID[len(m.ID)-1:]
		}
		cursor = page.Next
	}
	return digits
}

// An id that cannot be one is refused where ids are UUIDs, and else is nobody's.
func testListOfOddIDs(t *testing.T, b Backend, db DB) {
	for _, odd := range []string{"x", "no such id?", "né"} {
		page, err := db.List(t.Context(), relay.Filter{IDs: []string{ID("4"), odd}}, 10, "")
		if b.Forms().UUIDs && !errors.Is(err, dialect.ErrFilter) {
			t.Errorf("%q: %v, want ErrFilter", odd, err)
		}
		if !b.Forms().UUIDs && (err != nil || len(page.Messages) != 1 || page.Messages[0].ID != ID("4")) {
			t.Errorf("%q beside the id of 4: %+v, %v", odd, page.Messages, err)
		}
	}
}

func testListRefuses(t *testing.T, _ Backend, db DB) {
	failed, err := db.List(t.Context(), relay.Filter{State: "failed"}, 1, "")
	if err != nil || failed.Next == "" {
		t.Fatalf("the cursor is %q, %v", failed.Next, err)
	}
	cases := []struct {
		filter relay.Filter
		limit  int
		cursor string
	}{
		{relay.Filter{State: "dead"}, 1, ""},
		{relay.Filter{}, 0, ""},
		{relay.Filter{}, 1001, ""},
		{relay.Filter{}, 1, "x"},
		{relay.Filter{}, 1, "!"},
		{relay.Filter{State: "pending"}, 1, failed.Next},
	}
	for _, c := range cases {
		if _, err := db.List(t.Context(), c.filter, c.limit, c.cursor); !errors.Is(err, dialect.ErrFilter) {
			t.Errorf("%+v: %v, want ErrFilter", c, err)
		}
	}
}

// A filter that no index serves reads a bounded number of rows, says where it stopped, and goes on from there.
func testListIsBounded(t *testing.T, b Backend) {
	many(t, b, 1, "type", "'rare'")
	many(t, b, dialect.CountBound+5, "type", "'common'")
	db := b.Open()
	filter := relay.Filter{Type: "rare"}
	page, err := db.List(t.Context(), filter, 100, "")
	if err != nil || len(page.Messages) != 0 || page.Next == "" {
		t.Fatalf("the first page has %d messages and the cursor %q, %v", len(page.Messages), page.Next, err)
	}
	page, err = db.List(t.Context(), filter, 100, page.Next)
	if err != nil || len(page.Messages) != 1 || page.Next != "" {
		t.Fatalf("the second page has %d messages and the cursor %q, %v", len(page.Messages), page.Next, err)
	}
}
