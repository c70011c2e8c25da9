package program

import (
	"strings"
	"unicode/utf8"

	"github.com/outboxd/outboxd/relay"
)

const (
	maxResultBytes = 255     // what the result column holds
	maxAnswerBytes = 4 << 10 // of stdout
	maxErrorBytes  = 2 << 10 // of stderr, with what stands before it
)

// head keeps the start of what is written, and takes the rest without keeping it.
type head struct {
	limit int
	text  []byte
	cut   bool
}

func (h *head) Write(p []byte) (int, error) {
	room := h.limit - len(h.text)
	h.text = append(h.text, p[:min(room, len(p))]...)
	h.cut = h.cut || len(p) > room
	return len(p), nil
}

// tail keeps the end.
type tail struct {
	limit int
	text  []byte
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(t.text)+n > t.limit {
		t.cut = true
		p = p[max(0, n-t.limit):]
		keep := max(0, t.limit-len(p))
		t.text = append(t.text[:0], t.text[max(0, len(t.text)-keep):]...)
	}
	t.text = append(t.text, p...)
	return n, nil
}

// output is what a program writes. A little more of it is kept than is told: a secret at the edge is whole, and is masked.
type output struct {
	secrets *relay.Secrets
	stdout  head
	stderr  tail
}

func newOutput(s *relay.Secrets) *output {
	return &output{secrets: s, stdout: head{limit: maxAnswerBytes + s.Longest()}, stderr: tail{limit: maxErrorBytes + s.Longest()}}
}

// add puts the output into an outcome: the first line of stdout is the result of what is done, its start the answer where it
// says more than that; the end of stderr is part of the error.
func (o *output) add(to *relay.Outcome) {
	out := string(o.stdout.text)
	if o.stdout.cut {
		out = o.secrets.TrimEnd(out)
	}
	answer := relay.Cut(clean(o.secrets.Hide(out)), maxAnswerBytes)
	if to.Kind != relay.KindDone {
		to.Answer = answer
		to.Err = o.err(to.Err)
		return
	}
	line, _, _ := strings.Cut(answer, "\n")
	to.Result = relay.Cut(strings.TrimSpace(line), maxResultBytes)
	if strings.TrimSpace(answer) != to.Result {
		to.Answer = answer
	}
}

// err puts the end of stderr behind what happened: the last line first, since it says most in a list, and then those
// before it.
func (o *output) err(what string) string {
	text := string(o.stderr.text)
	if o.stderr.cut {
		text = o.secrets.TrimStart(text)
	}
	written := last(strings.TrimSpace(clean(o.secrets.Hide(text))), maxErrorBytes-len(what)-len(": \n"))
	if written == "" {
		return what
	}
	before, line := "", written
	if i := strings.LastIndexByte(written, '\n'); i >= 0 {
		before, line = "\n"+strings.TrimSpace(written[:i]), written[i+1:]
	}
	return what + ": " + line + before
}

// clean makes a text that every database can store: valid UTF-8 without NUL, lines ended by \n.
func clean(text string) string {
	return strings.NewReplacer("\x00", "\uFFFD", "\r\n", "\n").Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// last cuts a text to its last bytes, at the edge of a rune.
func last(text string, limit int) string {
	from := max(0, len(text)-max(0, limit))
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
