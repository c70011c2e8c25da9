package dialecttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// kind is one in a line: what, where, how many, and the last digit of the oldest one's id.
func kind(k dialect.Kind) string {
	state := k.State
	if k.Resolved {
		state = "resolved"
	}
	count := fmt.Sprint(k.Messages)
	if k.More {
		count += "+"
	}
	return fmt.Sprintf("%s %s %d %s %s %s", k.RoutingKey, k.Type, k.SchemaVersion, state, count, k.ID[len(k.ID)-1:])
}

func kinds(t *testing.T, db DB) (list []string, horizons []dialect.Horizon) {
	t.Helper()
	found, err := db.Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range found.Kinds {
		list = append(list, kind(k))
	}
	return list, found.Horizons
}

// Each kind of message comes once, with the oldest of it: also where some lapsed, and where a lease names messages that are
// final.
func testKinds(t *testing.T, _ Backend, db DB) {
	got, horizons := kinds(t, db)
	want := []string{"mail mail 1 done 1 a", "orders paid 1 failed 1 8", "orders paid 1 resolved 1 9", "orders paid 1 in_flight 1 6", "orders paid 1 pending 5 1"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(horizons) != 0 {
		t.Errorf("kinds %q, horizons %v, want %q and none", got, horizons, want)
	}
}

// A kind at either end of a long queue is seen, as is one behind it; what lies in the middle may not be, and that is said.
func testKindsAreBounded(t *testing.T, b Backend) {
	many(t, b, 1, "type, aggregatetype, schema_version", "'first', 'a', 1")
	many(t, b, 2*dialect.CountBound, "type, aggregatetype, schema_version", "'common', 'a', 1")
	many(t, b, 1, "type, aggregatetype, schema_version", "'last', 'a', 2")
	many(t, b, 2, "type, schema_version", "'b', 3")
	many(t, b, 1, "type, schema_version, lapses", "'b', 3, 2")
	execute(t, b, b.Forms().Analyze)
	db := b.Open()
	got, horizons := kinds(t, db)
	for i := range got {
		got[i] = got[i][:len(got[i])-2] // the id is any
	}
	bound := fmt.Sprint(2*dialect.CountBound-2) + "+"
	want := []string{"a common 1 pending " + bound, "a first 1 pending 1+", "a last 2 pending 1+", "b b 3 pending 3"}
	if !slices.Equal(got, want) {
		t.Errorf("kinds: %q, want %q", got, want)
	}
	if len(horizons) != 1 || horizons[0].State != "pending" || horizons[0].RoutingKey != "a" || horizons[0].Messages != 2*dialect.CountBound || horizons[0].Back.IsZero() {
		t.Errorf("horizons: %+v", horizons)
	}
}

func testOutcomes(t *testing.T, _ Backend, db DB) {
	outcomes, more, err := db.Outcomes(t.Context())
	var got []string
	for _, o := range outcomes {
		class := "-"
		if o.ErrorClass != nil {
			class = *o.ErrorClass
		}
		got = append(got, fmt.Sprint(o.Outcome, " ", class, " ", o.Sends, " ", o.Since.IsZero()))
	}
	if want := []string{"fail http_4xx 1 false", "lapse - 1 false", "retry http_5xx 1 false"}; err != nil || more || !slices.Equal(got, want) {
		t.Errorf("outcomes: %q, %v, %v, want %q", got, more, err, want)
	}
}
