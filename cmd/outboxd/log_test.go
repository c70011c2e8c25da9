package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestLogOfSpans holds that a length of time can be read in both formats.
func TestLogOfSpans(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"json": `"grace":"25s"`, "text": "grace=25s"} {
		var out bytes.Buffer
		newLog(&out, logConfig{Level: "info", Format: format}).Info("stopping", "grace", 25*time.Second)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
