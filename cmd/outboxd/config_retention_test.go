package main

import (
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestRetentionConfig: durations and never are taken, what is missing is the default, and all else is a mistake with its
// place.
func TestRetentionConfig(t *testing.T) {
	t.Parallel()
	c := retentionConfig{Done: "24h", Resolved: keepFor(never)}
	want := relay.DefaultRetention()
	want.Done, want.Resolved = 24*time.Hour, relay.Forever
	if got := c.keep(); got != want {
		t.Errorf("it keeps %+v, want %+v", got, want)
	}
	for _, wrong := range []keepFor{"7", "0s", "-1h", "999ms", "always", "1d"} {
		if _, err := wrong.span(); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
