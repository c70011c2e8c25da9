package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestOneLineAboutTheWait holds that a wait fills no log, and that readiness always has the last reason.
func TestOneLineAboutTheWait(t *testing.T) {
	t.Parallel()
	var logged safeBuffer
	w := &waiter{health: &health{}, log: slog.New(slog.NewTextHandler(&logged, nil))}
	for _, words := range []string{"first", "second", "third"} {
		w.say(errors.New(words), 0)
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "first") || *w.health.waiting.Load() != "third" {
		t.Errorf("%q", text)
	}
	w.said = time.Now().Add(-sayEvery)
	w.say(errors.New("fourth"), 0)
	if text := logged.String(); strings.Count(text, "\n") != 2 {
		t.Errorf("%q", text)
	}
}
