package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// How all commands write numbers, lists, lengths of time and other people's texts.

// either picks the word for one or for many.
func either(one bool, ofOne, ofMany string) string {
	if one {
		return ofOne
	}
	return ofMany
}

// counted is a number of things whose name takes an s.
func counted(n int, thing string) string {
	return fmt.Sprintf("%d %s", n, either(n == 1, thing, thing+"s"))
}

// messages counts them. more says that the number is a lower bound, here and in count.
func messages(n int, more bool) string {
	return either(more, "at least ", "") + counted(n, "message")
}

// count is such a number in a table.
func count(n int, more bool) string {
	return strconv.Itoa(n) + either(more, "+", "")
}

// listing is names in a sentence: a, b and c.
func listing(names []string) string { return series(names, " and ") }

// choice is names to choose from: a, b or c.
func choice(names []string) string { return series(names, " or ") }

func series(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}

// listed is a list in a sentence.
func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// versions names schema versions in a sentence.
func versions(list []int) string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = strconv.Itoa(v)
	}
	return either(len(list) == 1, "version ", "versions ") + listing(names)
}

// orElse returns the first value that is not zero.
func orElse[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
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

// short prints a duration as a person writes it: 1h, not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
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

// shellWord is a text as a shell takes it for one word.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.,:/@%+=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	if harmless(text) == text {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var word strings.Builder // as bash, zsh and ksh read it: nothing in it moves a cursor or ends the line
	for _, b := range []byte(text) {
		if b < ' ' || b >= 0x7f || b == '\'' || b == '\\' {
			fmt.Fprintf(&word, `\%03o`, b)
		} else {
			word.WriteByte(b)
		}
	}
	return "$'" + word.String() + "'"
}
