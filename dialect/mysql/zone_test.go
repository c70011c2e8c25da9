package mysql

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestTimesAreUTC has a message of a moment that is no time of day where the clock is put forward, written by applications
// of several zones: it is read to the microsecond, and what is reckoned from the clock does not depend on their zone.
func TestTimesAreUTC(t *testing.T) {
	t.Parallel()
	const gap = "2026-03-29 01:30:00.123456" // there is no 03:30 in Sofia on this day
	created := time.Date(2026, 3, 29, 1, 30, 0, 123456000, time.UTC)
	eachServer(t, func(t *testing.T, b backend) {
		s := b.store("a")
		for _, zone := range []string{"SYSTEM", "+00:00", "+08:00", "-03:00"} {
			b.db = b.open(t, "time_zone='"+zone+"'")
			id := b.Insert(relaytest.Seed{Type: orders, Expires: time.Hour})[0]
			b.exec(t, "UPDATE outbox SET created_at = ? WHERE id = ?", gap, id)
			before := b.Row(id)
			c := claim(t, s, testQuota(1))[0]
			after := b.Row(id)
			if c.ExpiresIn <= 0 || c.ExpiresIn > time.Hour || c.Age < before.Now.Sub(created) || c.Age > after.Now.Sub(created) {
				t.Errorf("%s: the claim is %+v, want it to expire within the hour and an age from %v to %v", zone, c, before.Now.Sub(created), after.Now.Sub(created))
			}
			messages, err := s.Load(t.Context(), []relay.Claim{c})
			if err != nil || len(messages) != 1 || messages[0].CreatedAt != created {
				t.Errorf("%s: Load gave %+v, %v, want a message of %v", zone, messages, err, created)
			}
			reclaim(t, s, c.Lease)
			lease, moved := b.Leases(), b.Row(id)
			if len(lease) != 1 || !moved.DueAt.Equal(lease[0].ClaimedAt) || moved.DueAt.Before(before.Now) || moved.DueAt.After(after.Now) {
				t.Errorf("%s: the message is due since %v, and was claimed at %+v", zone, moved.DueAt, lease)
			}
			b.exec(t, "DELETE FROM outbox")
			b.exec(t, "DELETE FROM outbox_lease")
		}
	})
}

// TestTimesDoNotDependOnTheHost runs cases about times again, in processes of other zones.
func TestTimesDoNotDependOnTheHost(t *testing.T) {
	t.Parallel()
	if os.Getenv("TZ") != "" {
		t.Skip("this is one of those processes")
	}
	for _, zone := range []string{"America/Sao_Paulo", "Europe/Sofia"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestTimesAreUTC|TestStore)$/^(MySQL|MariaDB|strange_applications)$/^(MySQL|MariaDB)$/^outcome$/^(retry|unknown)$")
			child.Env = append(os.Environ(), "TZ="+zone)
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
