package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// check is one figure beside its limits, which are none where they are below 0.
type check struct {
	Name    string  `json:"name"`
	Level   level   `json:"status"`
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least"` // only so many were counted, there are more
	Unit    string  `json:"unit"`     // s, or empty for a count
	What    string  `json:"what"`

	warn, crit float64
	below      bool // bad is what is below a limit, not above
}

func newCountCheck(name, what string, warn, crit int) check {
	return check{Name: name, What: what, warn: float64(warn), crit: float64(crit)}
}

func (c *check) add(n int, more bool) {
	c.Value += float64(n)
	c.AtLeast = c.AtLeast || more
}

func (c *check) judge() {
	beyond := func(limit float64) bool {
		return limit >= 0 && (c.below && c.Value < limit || !c.below && c.Value > limit)
	}
	switch {
	case beyond(c.crit):
		c.Level = levelCritical
	case beyond(c.warn):
		c.Level = levelWarning
	}
}

// number has no more digits than the clock is worth.
func (c check) number() string {
	return strconv.FormatFloat(float64(int64(c.Value*1000))/1000, 'f', -1, 64)
}

// words are the figure for people.
func (c check) words() string {
	n := c.number()
	if c.AtLeast {
		n = "at least " + n
	}
	if c.Unit != "" {
		n += " " + c.Unit
	}
	return n + " " + c.What
}

// performance is the figure as Nagios wants it: label=value and unit;warning;critical;least.
func (c check) performance() string {
	limit := func(value float64) string {
		text := strconv.FormatFloat(value, 'f', -1, 64)
		switch {
		case value < 0:
			return ""
		case c.below:
			return text + ":" // this much and more is good
		}
		return text
	}
	return c.Name + "=" + c.number() + c.Unit + ";" + limit(c.warn) + ";" + limit(c.crit) + ";0"
}

// checkReport is what a check found; without checks nothing could be looked at, and the problems say why.
type checkReport struct {
	Level    level    `json:"status"`
	Checks   []check  `json:"checks"`
	Problems []string `json:"problems"`
}

func (r checkReport) print(w io.Writer, format string) error {
	switch format {
	case "json":
		if r.Checks == nil {
			r.Checks = []check{}
		}
		return printJSON(w, r, "  ")
	case "prometheus":
		return r.prometheus(w)
	case "text":
		return r.text(w)
	}
	return r.nagios(w)
}

// nagios prints the line that people see, the figures behind |, and then what is wrong in words, as
// https://nagios-plugins.org/doc/guidelines.html has it.
func (r checkReport) nagios(w io.Writer) error {
	var said, figures []string
	for _, c := range r.Checks {
		if c.Level == r.Level && r.Level != levelOK {
			said = append(said, c.words())
		}
		figures = append(figures, c.performance())
	}
	switch {
	case len(r.Checks) == 0:
		said = r.Problems
	case r.Level == levelOK:
		said = []string{"all is within its limits"}
	}
	line := "OUTBOX " + strings.ToUpper(r.Level.String()) + " - " + oneLine(strings.Join(said, ", "))
	if len(figures) > 0 {
		line += " | " + strings.Join(figures, " ")
	}
	lines := []string{line}
	if len(r.Checks) > 0 {
		for _, words := range r.Problems {
			lines = append(lines, oneLine(words))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// oneLine takes out what ends a line or begins the figures.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '|':
			return '/'
		case moves(r):
			return ' '
		}
		return r
	}, text)
}

func (r checkReport) text(w io.Writer) error {
	for _, c := range r.Checks {
		if _, err := fmt.Fprintf(w, "%-8s  %s\n", c.Level, c.words()); err != nil {
			return err
		}
	}
	for _, words := range r.Problems {
		if _, err := fmt.Fprintln(w, "! "+oneLine(words)); err != nil {
			return err
		}
	}
	return nil
}

// prometheus prints what a collector of text files takes.
func (r checkReport) prometheus(w io.Writer) error {
	var text strings.Builder
	text.WriteString("# HELP outboxd_check_status 0 ok, 1 warning, 2 critical, 3 unknown.\n# TYPE outboxd_check_status gauge\n")
	fmt.Fprintf(&text, "outboxd_check_status{check=\"all\"} %d\n", r.Level)
	for _, c := range r.Checks {
		fmt.Fprintf(&text, "outboxd_check_status{check=%q} %d\n", c.Name, c.Level)
	}
	if len(r.Checks) > 0 {
		text.WriteString("# HELP outboxd_check_value The figure that was checked: seconds of age, else a count.\n# TYPE outboxd_check_value gauge\n")
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&text, "outboxd_check_value{check=%q} %s\n", c.Name, c.number())
	}
	_, err := io.WriteString(w, text.String())
	return err
}
