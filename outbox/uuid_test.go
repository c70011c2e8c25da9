package outbox

import (
	"slices"
	"testing"
	"time"
)

func TestIDsAreVersion7AndRise(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(0x0123456789ab)
	calls := 0
	clocks := map[string]func() time.Time{
		"wall":      time.Now,
		"stands":    func() time.Time { return start },
		"goes back": func() time.Time { calls++; return start.Add(-time.Duration(calls) * time.Second) },
	}
	for name, now := range clocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := idSource{now: now}
			last := ""
			for range 20_000 {
				id := source.next()
				if got, problem := parseUUID(id); problem != "" || got != id {
					t.Fatalf("id %q is not canonical: %s", id, problem)
				}
				if id[14] != '7' || !slices.Contains([]byte("89ab"), id[19]) {
					t.Fatalf("id %q: version or variant is wrong", id)
				}
				if id <= last {
					t.Fatalf("id %q after %q", id, last)
				}
				last = id
			}
		})
	}
}

func TestIDBeginsWithItsMillisecond(t *testing.T) {
	t.Parallel()
	source := idSource{now: func() time.Time { return time.UnixMilli(0x0123456789ab) }}
	if id := source.next(); id[:14] != "01234567-89ab-" {
		t.Errorf("id %q does not begin with its millisecond", id)
	}
}

// TestIDCarries holds that a full low part carries into the high one: the step to the next id is never backward.
func TestIDCarries(t *testing.T) {
	t.Parallel()
	source := idSource{now: func() time.Time { return time.UnixMilli(5) }, millis: 5, high: 0x7ff, low: 1<<62 - 1}
	before := source
	source.next()
	if source.high != before.high+1 || source.low >= 1<<33 {
		t.Errorf("after %+v came %+v", before, source)
	}
}

func TestIDsOfTwoSourcesDiffer(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.UnixMilli(1) }
	a, b := idSource{now: now}, idSource{now: now}
	if x, y := a.next(), b.next(); x == y {
		t.Errorf("two sources gave %s", x)
	}
}

func FuzzParseUUID(f *testing.F) {
	f.Add("0190163d-8694-739b-aea5-966c26f8ad91")
	f.Add("0190163D-8694-739B-AEA5-966C26F8AD91")
	f.Add("00000000-0000-0000-0000-000000000000")
	f.Add("{0190163d-8694-739b-aea5-966c26f8ad9}")
	f.Add("0190163d8694739baea5966c26f8ad91")
	f.Add("0190163d-8694-739b-aea5-966c26f8ad9\xff")
	f.Add("0190163d-8694-739b-aea5--66c26f8ad91")
	f.Fuzz(func(t *testing.T, s string) {
		id, problem := parseUUID(s)
		if (id == "") != (problem != "") {
			t.Fatalf("parseUUID(%q) = %q, %q", s, id, problem)
		}
		if again, problem := parseUUID(id); id != "" && (again != id || problem != "") {
			t.Fatalf("parseUUID(%q) = %q, %q: not canonical", id, again, problem)
		}
	})
}
