package main

import (
	"io"
	"log/slog"
	"os"
)

// newLog makes the logger of a configuration that was checked: text for a person at a terminal, JSON for all else.
func newLog(w io.Writer, c logConfig) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // checked with the configuration; info where it is not
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: spans}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// spans writes a length of time as people do, 25s, in JSON too, where slog would count nanoseconds.
func spans(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
