package demo

import (
	"fmt"
	"io"
	"strings"
)

// page is what the reader sees: plain text, coloured on a terminal.
type page struct {
	out    io.Writer
	colour bool
}

// output ends the story where nobody reads on: what was begun is taken away then, as after a signal.
type output struct {
	to  io.Writer
	end func(error)
}

// Write is part of io.Writer.
func (o output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.end(err)
	}
	return n, err
}

// title opens a step.
func (p page) title(text string) { fmt.Fprintf(p.out, "\n%s\n", p.paint("1", text)) }

// say prints a paragraph, its lines as they are.
func (p page) say(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(p.out, "  "+line)
	}
}

// line prints one fact under a label.
func (p page) line(label, format string, args ...any) {
	fmt.Fprintf(p.out, "    %s  %s\n", p.paint("36", fmt.Sprintf("%-8s", label)), fmt.Sprintf(format, args...))
}

func (p page) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
