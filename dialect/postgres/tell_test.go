package postgres

import (
	"slices"
	"testing"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestRefusedTellingDelaysItselfOnly has a trigger of the application's that refuses one of the messages that tell.
func TestRefusedTellingDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	p := b.postgres("a")
	ids := b.Insert(append(slices.Repeat([]relaytest.Seed{{Type: orders}}, 10), relaytest.Seed{Type: orders, AggregateID: new("7")})...)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`)
	b.exec(t, "CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW WHEN (NEW.type = 'told' AND NEW.aggregateid = '7') EXECUTE FUNCTION refuse()")
	claims := claim(t, p, testQuota(20))
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		policy := relay.Policy{Emit: relay.Emit{Type: "told"}}
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Done("3@1234567"), Policy: policy})
	}
	for range 2 {
		back, err := p.Settle(t.Context(), settlements)
		if err != nil || len(back) != 1 || back[0].Why != relay.Refused || back[0].Row().ID != ids[10] {
			t.Errorf("Settle gives %v, %v, want the one whose telling is refused", back, err)
		}
	}
	b.exec(t, "DROP TRIGGER refuse ON outbox")
	if back, err := p.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
		t.Errorf("without the trigger Settle gives %v, %v", back, err)
	}
	var told []int
	if b.read(&told, "SELECT count(*) FROM outbox WHERE type = 'told'"); told[0] != len(ids) {
		t.Errorf("%d messages tell, want %d", told[0], len(ids))
	}
}
