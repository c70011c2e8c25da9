package relay

import "testing"

// TestMark: a lane is busy after a full claim of messages that never lapsed; claims of lapsed ones, and of one by its id,
// change nothing, or a busy lane would lose its share with each of them.
func TestMark(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		was        bool
		quota      Quota
		got        int
		busy, full bool
	}{
		{"full", false, Quota{Limit: 5}, 5, true, true},
		{"not full", true, Quota{Limit: 5}, 4, false, false},
		{"lapsed, empty", true, Quota{Limit: 5, Lapses: 1}, 0, true, false},
		{"lapsed, full", false, Quota{Limit: 5, Lapses: 1}, 5, false, false},
		{"by id", false, Quota{Limit: 1, ID: "a"}, 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &lane{busy: c.was}
			c.quota.RoutingKey = "x"
			full := (&claimer{lanes: map[string]*lane{"x": l}}).mark([]Quota{c.quota}, map[string]int{"x": c.got})
			if l.busy != c.busy || full != c.full {
				t.Errorf("busy %t and full %t, want %t and %t", l.busy, full, c.busy, c.full)
			}
		})
	}
}
