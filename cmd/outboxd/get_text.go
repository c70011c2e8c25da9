package main

import (
	"strconv"
	"strings"

	"github.com/outboxd/outboxd/dialect"
)

// answered is what a recorded send was answered: the status, and the error's first line.
func answered(a dialect.Attempt) string {
	line := firstLine(value(a.Error))
	if a.Status == nil || strings.Contains(line, strconv.Itoa(*a.Status)) {
		return line
	}
	return strings.TrimSpace("status " + strconv.Itoa(*a.Status) + " " + line)
}
