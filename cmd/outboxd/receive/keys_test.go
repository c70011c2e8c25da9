package receive

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestForgetting holds that a key is remembered for as long as was said, and that what comes after that is an effect.
func TestForgetting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(time.Minute, 10)
		body := sha256.Sum256(nil)
		work := func() Verdict {
			e, _, verdict := k.begin("a", "", body)
			if verdict == Effect {
				k.finish(e, 200)
			}
			return verdict
		}
		for after, want := range []Verdict{Effect, Repeat, Effect, Repeat} {
			if got := work(); got != want {
				t.Errorf("request %d: %s, want %s", after, got, want)
			}
			time.Sleep(31 * time.Second) //nolint:forbidigo // a step of synctest's clock
		}
		if k.doubled != 1 || k.effects != 2 {
			t.Errorf("%d effects, %d keys with more than one", k.effects, k.doubled)
		}
	})
}

// TestNoMemory holds that without one every request is an effect.
func TestNoMemory(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{MaxKeys: 10})
	for range 3 {
		r.post("", "a", "{}")
	}
	if got := r.Tally(); got.Effects != 3 || got.Doubled != 1 {
		t.Errorf("%+v", got)
	}
}

// TestFullTable holds that memory is bounded, and that it is told what was forgotten.
func TestFullTable(t *testing.T) {
	t.Parallel()
	r := newTrial(t, Options{MaxKeys: 2, Remember: time.Hour})
	for i := range 5 {
		r.post("", fmt.Sprint(i), "{}")
	}
	if got := r.Tally(); got.Effects != 5 || got.Forgotten != 3 || len(r.keys.seen) != 2 || len(r.keys.order) != 2 {
		t.Errorf("%+v, %d keys", got, len(r.keys.seen))
	}
	if r.Did("2") || !r.Did("3") {
		t.Error("it forgot another one than the oldest")
	}
}
