package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/outboxd/outboxd/dialect"
)

// textRunes is how much of an error or an answer one line shows.
const textRunes = 160

// firstLine is the first line of a text that has something in it, cut to textRunes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip(strings.TrimSpace(line))
}

// beginning is the start of a text, its lines in one.
func beginning(text string) string {
	return clip(strings.Join(strings.Fields(text), " "))
}

func clip(text string) string {
	if list := []rune(text); len(list) > textRunes {
		return string(list[:textRunes-1]) + "…"
	}
	return text
}

// harmless makes what cannot be seen visible, in the form in which Go writes it: a text that somebody else wrote moves no
// cursor, hides nothing and turns no line around.
func harmless(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// answered is what a recorded send was answered: the status, and the error's first line.
func answered(a dialect.Attempt) string {
	line := firstLine(value(a.Error))
	if a.Status == nil || strings.Contains(line, strconv.Itoa(*a.Status)) {
		return line
	}
	return strings.TrimSpace("status " + strconv.Itoa(*a.Status) + " " + line)
}

// value is the text that a column holds, empty for NULL.
func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// joined is a class with its words, where there are any.
func joined(class, words string) string {
	if class == "" || words == "" {
		return class + words
	}
	return class + " (" + words + ")"
}

// span is a length of time in the two largest units that tell something.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return short(d.Round(time.Minute))
	case d >= 10*time.Second:
		return short(d.Round(time.Second))
	}
	return d.Round(time.Millisecond).String()
}
