package webhook

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// costTable says what each outcome costs, in ordinary times and in others.
func costTable() string {
	var b strings.Builder
	b.WriteString("| Outcome | Meaning | `attempts` | Then | In the end | `unknown_since` | `lapses` | Breaker opened meanwhile | Cut off by us |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range []struct {
		relay.Outcome
		meaning string
	}{
		{relay.Done(""), "acknowledged"},
		{relay.Retry("", ""), "answered: not now"},
		{relay.Fail(relay.Rejected, "", ""), "answered: these bytes never"},
		{relay.Unknown("", ""), "sent, and the answer was lost"},
		{relay.Unsent("", ""), "nothing went out"},
	} {
		ordinary := relay.Try{Outcome: o.Outcome, Policy: policy()}
		opened, cut := ordinary, ordinary
		opened.Opened, opened.Pause, cut.CutOff = true, time.Second, true
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", o.Kind, o.meaning, fateOf(o.Outcome), instead(opened, ordinary), instead(cut, ordinary))
	}
	return b.String()
}

func policy() relay.Policy {
	return relay.Policy{Budget: relay.DefaultBudget, Base: relay.DefaultBase, Cap: relay.DefaultCap}
}

// fateOf is what becomes of a message by its outcome, as the cells of a row: at its first send, and at its last.
func fateOf(o relay.Outcome) string {
	first := relay.Decide(relay.Try{Outcome: o, Policy: policy()}).Row()
	cells := []string{charge(first), next(first), "–", since(first), lapses(first)}
	if first.State == relay.Pending {
		cells[2] = last(o)
	}
	return strings.Join(cells, " | ")
}

// last is what becomes of a message whose last attempt comes to an outcome.
func last(o relay.Outcome) string {
	attempts, when := relay.DefaultBudget, ""
	if o.Limit > 0 {
		attempts, when = o.Limit, " at attempt "+strconv.Itoa(o.Limit)
	}
	final := relay.Decide(relay.Try{Claim: relay.Claim{Attempts: attempts - 1}, Outcome: o, Policy: policy()}).Row()
	if final.State == relay.Pending {
		return "it waits"
	}
	return next(final) + when
}

// instead says what is other than in ordinary times.
func instead(t, ordinary relay.Try) string {
	r, usual := relay.Decide(t).Row(), relay.Decide(ordinary).Row()
	if r == usual {
		return "the same"
	}
	var parts []string
	if !r.Charge && usual.Charge {
		parts = append(parts, "not charged")
	}
	if t.Opened {
		parts = append(parts, "`pending` for the breaker's pause")
	} else {
		parts = append(parts, next(r))
	}
	if r.Lapses != usual.Lapses {
		parts = append(parts, "`lapses` "+lapses(r))
	}
	return strings.Join(parts, ", ")
}

func charge(r relay.Row) string {
	if r.Charge {
		return "+ 1"
	}
	return "–"
}

func next(r relay.Row) string {
	switch {
	case r.State == relay.Finished:
		return "`done`"
	case r.State == relay.Failed:
		return fmt.Sprintf("`failed`, `%s`", r.Reason)
	case r.What == relay.WhatUnsent:
		return "`pending` for a tenth of its age"
	case r.Delay == 0:
		return "`pending`, due now"
	}
	return "`pending` for the back-off"
}

func since(r relay.Row) string {
	if r.MarkUnknown {
		return "set"
	}
	return "–"
}

func lapses(r relay.Row) string {
	switch r.Lapses {
	case relay.LapsesKeep:
		return "kept"
	case relay.LapsesAdd:
		return "+ 1"
	default:
		return "0"
	}
}

// code writes a word of the table's columns.
func code(word string) string {
	if word == "" {
		return "–"
	}
	return "`" + word + "`"
}
