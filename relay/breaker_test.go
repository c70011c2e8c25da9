package relay

import (
	"strconv"
	"testing"
	"time"
)

// breakerAt drives a breaker by a clock of its own.
type breakerAt struct {
	*breaker
	t   *testing.T
	now time.Time
	id  int
}

func newBreakerAt(t *testing.T) *breakerAt {
	t.Parallel()
	cfg := BreakerConfig{Run: 5, Pause: time.Second, Cap: 30 * time.Second}
	return &breakerAt{breaker: newBreaker(cfg), t: t, now: time.Now()}
}

// outcomes reports n outcomes of one kind, each of a message of its own.
func (b *breakerAt) outcomes(n int, kind Kind) {
	for range n {
		b.id++
		b.report(b.now, kind, Claim{ID: strconv.Itoa(b.id)}, "503", 8)
	}
}

// probeAfter waits for the pause, which must be as long as said, and ends the probe.
func (b *breakerAt) probeAfter(pause time.Duration, kind Kind) {
	b.t.Helper()
	if b.wantsProbe(b.now.Add(pause - 1)) {
		b.t.Fatalf("wants a probe before %s", pause)
	}
	if b.now = b.now.Add(pause); !b.wantsProbe(b.now) {
		b.t.Fatalf("wants no probe after %s", pause)
	}
	b.probing = true
	if b.wantsProbe(b.now) {
		b.t.Fatal("wants a second probe beside the first")
	}
	b.probed(b.now, kind, "503")
}

func (b *breakerAt) is(state string) {
	b.t.Helper()
	if b.state() != state {
		b.t.Fatalf("the breaker is %s, want %s", b.state(), state)
	}
}

func TestBreaker_OpensAfterARun(t *testing.T) {
	b := newBreakerAt(t)
	b.outcomes(4, KindRetry)
	b.outcomes(1, KindDone) // starts the count anew
	b.outcomes(4, KindUnsent)
	b.outcomes(1, KindFail) // an answer, too
	b.outcomes(2, KindRetry)
	b.outcomes(2, KindUnknown)
	b.is("ok")
	b.outcomes(1, KindUnsent)
	b.is("open")
	if b.room(8) != 0 {
		t.Error("an open breaker lets messages be claimed")
	}
}

func TestBreaker_OneMessageAloneDoesNotOpenIt(t *testing.T) {
	b := newBreakerAt(t)
	for range 50 {
		b.report(b.now, KindRetry, Claim{ID: "bad"}, "500", 8)
		b.report(b.now, KindRetry, Claim{ID: "worse"}, "500", 8)
	}
	b.is("ok")
	b.outcomes(1, KindRetry)
	b.is("open")
}

func TestBreaker_ProbesAfterDoublingPauses(t *testing.T) {
	b := newBreakerAt(t)
	b.outcomes(5, KindUnsent)
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		b.probeAfter(pause*time.Second, KindUnsent)
		b.is("open")
	}
	b.probeAfter(30*time.Second, KindFail) // answered: that is all it takes
	b.is("ramp")
}

func TestBreaker_VoidProbeChangesNothing(t *testing.T) {
	b := newBreakerAt(t)
	b.outcomes(5, KindRetry)
	b.probeAfter(time.Second, "")
	b.is("open")
	b.probeAfter(time.Second, KindRetry)
	b.probeAfter(2*time.Second, KindDone)
	b.is("ramp")
}

func TestBreaker_WidthGrowsFromOne(t *testing.T) {
	b := newBreakerAt(t)
	b.outcomes(5, KindRetry)
	b.probeAfter(time.Second, KindDone)
	for want := 1; want < 8; want++ {
		if got := b.room(8); got != want {
			t.Fatalf("room %d, want %d", got, want)
		}
		b.inFlight = want
		if got := b.room(8); got != 0 {
			t.Fatalf("room %d beside %d in flight, want 0", got, want)
		}
		b.inFlight = 0
		b.outcomes(1, KindDone)
	}
	b.is("ok")
}

// TestBreaker_LearnsThatMessagesFooledIt: closed by an early probe and open again within a minute, it needs a longer run
// each time; an outage, or ten quiet minutes, make it trust again.
func TestBreaker_LearnsThatMessagesFooledIt(t *testing.T) {
	b := newBreakerAt(t)
	b.outcomes(5, KindRetry)
	for _, need := range []int{20, 80, 320, 1000, 1000} {
		b.probeAfter(time.Second, KindDone)
		b.now = b.now.Add(50 * time.Second)
		b.outcomes(b.need-1, KindRetry)
		b.is("ramp")
		b.outcomes(1, KindRetry)
		b.is("open")
		if b.need != need {
			t.Fatalf("needs a run of %d, want %d", b.need, need)
		}
	}
	t.Run("an outage", func(t *testing.T) {
		b := *b
		inner := *b.breaker
		b.breaker, b.t = &inner, t
		for _, pause := range []time.Duration{1, 2, 4, 8, 16} {
			b.probeAfter(pause*time.Second, KindUnsent)
		}
		if b.need != 5 {
			t.Errorf("needs a run of %d after five failed probes, want 5", b.need)
		}
		b.probeAfter(30*time.Second, KindDone)
		b.outcomes(5, KindRetry)
		if b.need != 5 {
			t.Errorf("needs a run of %d: a late probe closed it, so nothing fooled it", b.need)
		}
	})
	t.Run("ten quiet minutes", func(t *testing.T) {
		b.t = t
		b.probeAfter(time.Second, KindDone)
		b.now = b.now.Add(10 * time.Minute)
		b.outcomes(5, KindRetry)
		b.is("open")
	})
	t.Run("a minute between", func(t *testing.T) {
		b.t = t
		b.need = 5
		b.probeAfter(time.Second, KindDone)
		b.now = b.now.Add(time.Minute)
		b.outcomes(5, KindRetry)
		if b.need != 5 {
			t.Errorf("needs a run of %d, want 5", b.need)
		}
	})
}

func TestPickProbe(t *testing.T) {
	t.Parallel()
	waiting := []Waiting{{"a", "k", 2}, {"b", "k", 1}, {"c", "k", 3}, {"d", "k", 1}}
	seen := map[string]bool{}
	for range 200 {
		w, ok := pickProbe(waiting)
		if !ok || w.Attempts != 1 {
			t.Fatalf("picked %+v, which is not among the least charged", w)
		}
		seen[w.ID] = true
	}
	if len(seen) != 2 {
		t.Errorf("picked only %v", seen)
	}
	if _, ok := pickProbe(nil); ok {
		t.Error("picked one of none")
	}
}
