package sqlite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestRefusedTellingDelaysItselfOnly has a trigger of the application's that refuses one of the messages that tell.
func TestRefusedTellingDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 20)
	s := f.relayStore(t, "a", time.Hour)
	f.exec(t, `CREATE TRIGGER no BEFORE INSERT ON outbox WHEN new.type = 'told' AND new.aggregateid = '7' BEGIN SELECT raise(ABORT, 'QzQx'); END`)
	claims := claim(t, s, testQuota(20))
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		policy := relay.Policy{Emit: relay.Emit{Type: "told"}}
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("3@1234567"), Policy: policy})
	}
	for range 2 {
		back, err := s.Settle(t.Context(), settlements)
		if err != nil || len(back) != 1 || back[0].Why != relay.Refused || back[0].Row().Seq != 7 || strings.Contains(back[0].Err.Error(), "QzQx") {
			t.Errorf("Settle gives %v, %v, want the one whose telling is refused", back, err)
		}
	}
	f.exec(t, "DROP TRIGGER no")
	if back, err := s.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
		t.Errorf("without the trigger Settle gives %v, %v", back, err)
	}
	var told []string
	if err := f.app.Select(&told, "SELECT aggregateid FROM outbox WHERE type = 'told' ORDER BY CAST(aggregateid AS INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if n := len(told); n != 20 || len(slices.Compact(told)) != n {
		t.Errorf("what tells is of %v, want one of each", told)
	}
}
