package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// TestTimeline holds the order of what is known of a message's lives, and what is said of each event.
func TestTimeline(t *testing.T) {
	t.Parallel()
	turnedDown := send(1, relay.WhatRetry, "http_5xx", "503 Service Unavailable\nRetry-After: 2", -9*time.Minute)
	turnedDown.Status, turnedDown.Answer = new(503), new("<h1>busy</h1>\n  try\tlater\x1b[2J")
	lapse := send(0, relay.WhatLapse, "", "", -8*time.Minute)
	rejected := send(2, relay.WhatFail, "http_4xx", "422", -7*time.Minute)
	again := send(1, relay.WhatUnknown, "timeout", "no answer", -5*time.Minute)
	again.Life = 1
	replay := dialect.Operation{Op: "replay", Actor: "ann@host", Note: new("currency added"), AppliedAt: at(-6 * time.Minute)}
	tooLarge := send(1, relay.WhatFail, "too_large", "413", -7*time.Minute)
	lease := &dialect.Lease{Relay: "b", ClaimedAt: *at(-3 * time.Second)}
	for name, c := range map[string]struct {
		events []event
		want   []string
	}{
		"done at once": {
			timeline(message(relay.Finished, func(m *dialect.Message) { m.Result = new("3@17") }), nil, nil, nil),
			[]string{"11:50:00  created", "11:59:00 +9m done 3@17"},
		},
		"two lives": {
			timeline(message(relay.Pending, due(time.Minute), erred(1, "timeout", "no answer"), func(m *dialect.Message) { m.Replays = 1 }),
				nil, []dialect.Attempt{turnedDown, lapse, rejected, again}, []dialect.Operation{replay}),
			[]string{
				"11:50:00  created",
				`11:51:00 +1m retry 1 a 1s 503 http_5xx (503 Service Unavailable) <h1>busy</h1> try later\x1b[2J`,
				"11:52:00 +1m lapse 0 a 1s",
				"11:53:00 +1m fail 2 a 1s http_4xx (422)",
				"11:53:01 +1s failed: rejected",
				"11:54:00 +59s replay by ann@host (currency added)",
				"11:55:00 +1m unknown 1 of life 2 a 1s timeout (no answer)",
				"12:01:00 +6m due",
			},
		},
		"too large in its first life": {
			timeline(message(relay.Failed, failed(relay.Cancelled), func(m *dialect.Message) { m.Replays = 1 }), nil, []dialect.Attempt{tooLarge}, nil),
			[]string{"11:50:00  created", "11:53:00 +3m fail 1 a 1s too_large (413)", "11:53:01 +1s failed: too_large", "11:59:00 +5m59s failed: cancelled"},
		},
		"rejected": {
			timeline(message(relay.Failed, failed(relay.Rejected)), nil, []dialect.Attempt{rejected}, nil),
			[]string{"11:50:00  created", "11:53:00 +3m fail 2 a 1s http_4xx (422)", "11:59:00 +6m failed: rejected"},
		},
		"in flight": {
			timeline(message(relay.InFlight), lease, nil, nil),
			[]string{"11:50:00  created", "11:59:57 +9m57s claimed b"},
		},
		"settled while it was looked at": {
			timeline(message(relay.Finished), lease, nil, nil),
			[]string{"11:50:00  created", "11:59:00 +9m done"},
		},
		"failed and resolved at once": {
			timeline(message(relay.Failed, failed(relay.Cancelled), func(m *dialect.Message) { m.ResolvedAt = m.FailedAt }), nil, nil, nil),
			[]string{"11:50:00  created", "11:59:00 +9m failed: cancelled", "11:59:00 +0s resolved"},
		},
	} {
		var got []string
		for _, e := range c.events {
			number := ""
			if e.Status != nil {
				number = fmt.Sprint(*e.Status)
			}
			rest := strings.Join(strings.Fields(strings.Join([]string{e.What, e.Attempt, e.Relay, e.Took, number, e.Error, e.Answer}, " ")), " ")
			got = append(got, e.At.Format(time.TimeOnly)+" "+e.After+" "+rest)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestNoSend holds that what is said where no send is recorded fits the message.
func TestNoSend(t *testing.T) {
	t.Parallel()
	for want, of := range map[string][]dialect.Message{
		noSend: {message(relay.Finished)},
		"no send of it is recorded: one that is done at once leaves no row, and old rows are removed": {
			message(relay.Pending, erred(1, "http_5xx", "503")), message(relay.Pending, lapses(1)), message(relay.Failed, failed(relay.Exhausted)),
			message(relay.Pending, func(m *dialect.Message) { m.Replays = 1 }),
		},
		"no send of it is recorded yet: the one under way leaves a row when it ends, but where it is done at once": {message(relay.InFlight)},
		"nothing of it went out: what could not be sent leaves no row, see error_class and last_error": {
			message(relay.Pending, erred(0, "refused", "connection refused")), message(relay.Failed, failed(relay.Expired), erred(0, "expired", "past")),
		},
		"nothing of it went out yet": {message(relay.Pending)},
		"nothing of it went out":     {message(relay.Failed, failed(relay.Cancelled), func(m *dialect.Message) { m.Attempts = 0 })},
	} {
		for _, m := range of {
			if got := noSendOf(m); got != want {
				t.Errorf("%+v: %s, want %s", m, got, want)
			}
		}
	}
}

// TestHarmless holds that nothing which is shown can move a cursor, hide, or turn a line around.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ä 漢 🙂 'quoted' \"twice\" \\": "plain ä 漢 🙂 'quoted' \"twice\" \\",
		"\x1b[31mred\x1b[0m\a":              `\x1b[31mred\x1b[0m\a`,
		"a\r\nb\tc\x00":                     `a\r\nb\tc\x00`,
		"\u009b2J \u202e \u200b \ufeff":     `\u009b2J \u202e \u200b \ufeff`,
		"\xff":                              "\ufffd",
	} {
		if got := harmless(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// TestTextsAreCut holds that one line stays one line.
func TestTextsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", textRunes+1)
	for got, want := range map[string]string{
		firstLine("\n one \n two"):    "one",
		firstLine(""):                 "",
		firstLine(long):               strings.Repeat("ä", textRunes-1) + "…",
		beginning(" one\n\ttwo  "):    "one two",
		beginning(long):               strings.Repeat("ä", textRunes-1) + "…",
		beginning(long[:textRunes*2]): long[:textRunes*2],
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567 * time.Nanosecond: "1ms", 9999 * time.Millisecond: "9.999s", 10400 * time.Millisecond: "10s", time.Minute: "1m",
		61 * time.Second: "1m1s", time.Hour: "1h", 90*time.Minute + 20*time.Second: "1h30m", 47*time.Hour + 59*time.Minute: "47h59m", 100 * time.Hour: "4 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%s is told as %s, want %s", d, got, want)
		}
	}
}
