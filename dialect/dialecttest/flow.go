package dialecttest

import (
	"testing"
	"time"
)

// The newest messages and sends come first, with the type of their message, by the database's clock.
func testFlow(t *testing.T, _ Backend, db DB) {
	f, err := db.Flow(t.Context(), 100)
	if err != nil || len(f.Messages) != 10 || len(f.Sends) != 3 {
		t.Fatalf("%+v, %v", f, err)
	}
	if m := f.Messages[0]; m.Type != "mail" || m.RoutingKey != "mail" || m.State != "done" || m.Took == nil || *m.Took < 0 || m.Age < 0 || time.Duration(m.Age) > time.Hour {
		t.Errorf("the newest message: %+v", m)
	}
	if m := f.Messages[9]; m.Type != "paid" || m.State != "pending" || m.Took != nil {
		t.Errorf("the oldest message: %+v", m)
	}
	if s := f.Sends[0]; s.Outcome != "lapse" || s.RoutingKey != "orders" || s.Type != "paid" || time.Duration(s.Age) > time.Hour {
		t.Errorf("the newest send: %+v", s)
	}
	if f, err := db.Flow(t.Context(), 2); err != nil || len(f.Messages) != 2 || len(f.Sends) != 2 {
		t.Errorf("two of each: %+v, %v", f, err)
	}
}
