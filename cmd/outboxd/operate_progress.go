package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressEvery is between lines about something that goes on, where no person watches.
const progressEvery = 5 * time.Second

// progress shows how far something is: a bar where a person watches, else a line every now and then.
type progress struct {
	w     io.Writer
	what  string
	total int // 0: nobody knows
	bar   *progressbar.ProgressBar
	said  time.Time
	last  int
}

func (p *program) newProgress(what string, total int) *progress {
	g := &progress{w: p.stderr, what: what, total: total, said: time.Now()}
	if isTerminal(p.stderr) {
		most := total
		if most == 0 {
			most = -1 // a bar without an end
		}
		g.bar = progressbar.NewOptions(most, progressbar.OptionSetWriter(p.stderr), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true), progressbar.OptionClearOnFinish())
	}
	return g
}

// at tells how far it is.
func (g *progress) at(n int) {
	switch {
	case g.bar != nil:
		_ = g.bar.Set(n) // More than was counted at first is no fault.
	case n != g.last && time.Since(g.said) >= progressEvery:
		g.said, g.last = time.Now(), n
		line := fmt.Sprintf("%s: %s", g.what, messages(n, false))
		if g.total > 0 {
			line = fmt.Sprintf("%s: %d of %s", g.what, n, messages(g.total, false))
		}
		fmt.Fprintln(g.w, line)
	}
}

// end takes the bar away.
func (g *progress) end() {
	if g.bar != nil {
		_ = g.bar.Finish()
		g.bar = nil
	}
}
