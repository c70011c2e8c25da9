package relay

import (
	"log/slog"
	"strings"
	"testing"
)

// TestFailureIsAWarning: who watches the log by its level sees that a message failed, and why.
func TestFailureIsAWarning(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := &Relay{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	claim := Claim{ID: "42", Type: "order_paid", Attempts: 1}
	r.told(nil, settling{Settlement: ended(claim, Unknowable, "late", "too late"), claim: claim, dest: &destination{Destination: Destination{Name: "crm"}}})
	const want = `level=WARN msg="message failed" id=42 type=order_paid destination=crm reason=unknown `
	if got := log.String(); !strings.Contains(got, want) || !strings.Contains(got, `last_error="too late" attempts=1`) || !strings.Contains(got, "error_class=late") {
		t.Errorf("it logs %s", got)
	}
}
