package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// place is where something stands in the file: line and column count from 1, line 0 means that it is not in the file.
// key is the key as it may be shown, or empty.
type place struct {
	line, column int
	key          string
}

// problem is one mistake. Its text says what is wrong and the mend, and never holds a value.
type problem struct {
	place
	path string // the key's path, such as relay.lease, or a variable's name
	text string
}

type problems []problem

// configError is all mistakes of a configuration at once.
type configError struct {
	file     string // empty: there is none
	problems problems
}

// Error has a line for each mistake: file, line, column, key and what is wrong; below it the key alone with a caret.
func (e *configError) Error() string {
	slices.SortStableFunc(e.problems, func(a, b problem) int { return a.line - b.line })
	var b strings.Builder
	for _, p := range e.problems {
		b.WriteString("\n")
		if p.line > 0 && e.file != "" {
			fmt.Fprintf(&b, "%s:%d:%d: ", e.file, p.line, p.column)
		}
		if p.path != "" {
			b.WriteString(p.path + ": ")
		}
		b.WriteString(p.text)
		if p.line > 0 && p.key != "" {
			b.WriteString(caret(p.place))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// caret draws the key in its column and a caret below it. Nothing else of the line is shown, for it may be a secret.
func caret(p place) string {
	number := fmt.Sprintf("%5d", p.line)
	indent := strings.Repeat(" ", min(p.column, 60)-1)
	return fmt.Sprintf("\n%s | %s%s:\n%s | %s^", number, indent, p.key, strings.Repeat(" ", len(number)), indent)
}

// unknownKey words the mistake of a key that is not known, with the nearest one that is.
func unknownKey(e entry, known []string) string {
	words := "unknown key"
	if e.place.key != "" {
		words += " " + e.place.key
	}
	if near := nearest(e.key, known); near != "" {
		return words + "; did you mean " + near + "?"
	}
	return words + "; known here: " + strings.Join(known, ", ")
}

// nearest returns the candidate that is at most two edits away from word, or nothing.
func nearest(word string, candidates []string) string {
	best, at := "", 3
	for _, c := range candidates {
		if d := edits(word, c); d < at && d < len(c) {
			best, at = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two short words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// plainName tells whether a key looks like a name; anything else may be a value that slipped into its place.
func plainName(key string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_.*-]{1,60}$`).MatchString(key)
}

func keysOf(fields map[string]reflect.Value) []string {
	return slices.Sorted(maps.Keys(fields))
}
