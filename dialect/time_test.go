package dialect

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 15, 4, 5, 600000000, time.FixedZone("+02", 7200))
	for _, value := range []any{at, at.UnixMicro()} {
		var scanned Time
		if err := scanned.Scan(value); err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(scanned); err != nil || string(text) != `"2026-01-31T13:04:05.6Z"` {
			t.Errorf("%v is %s, %v", value, text, err)
		}
	}
	var scanned Time
	if err := scanned.Scan("2026"); err == nil {
		t.Error("a text is a time")
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for micros, says := range map[int64]string{0: "0s", 1500: "2ms", 90_000_000: "1m30s", -5_000_000: "-5s"} {
		var a Age
		if err := a.Scan(micros); err != nil || a.String() != says {
			t.Errorf("%d is %s, %v, want %s", micros, a, err, says)
		}
	}
}
