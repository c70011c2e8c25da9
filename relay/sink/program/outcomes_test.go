//go:build linux

package program

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// update writes the tables of docs/outcomes.md anew: go test ./relay/sink/program -run TestOutcomesDocument -update.
var update = flag.Bool("update", false, "write the tables of programs in docs/outcomes.md")

const document = "../../../docs/outcomes.md"

// TestOutcomesDocument executes a program for every exit code and every other end, lets the relay decide, and holds that the
// part of docs/outcomes.md about programs says just that.
func TestOutcomesDocument(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := replaceTable(t, string(old), "| Exit code |", codeTable(t))
	text = replaceTable(t, text, "| What happens to a program |", endTable(t))
	if text == string(old) {
		return
	}
	if !*update {
		t.Fatalf("%s says something else than the program does; write its tables anew with -update, and read the difference", document)
	}
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceTable puts a table in the place of the one with that header.
func replaceTable(t *testing.T, text, header, table string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, header)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table that begins with %q", document, header)
	}
	return before + table + "\n" + after
}

// codeTable has a row for all exit codes of one fate.
func codeTable(t *testing.T) string {
	t.Helper()
	s := shell(t, nil, "exit $OUTBOX_ID")
	outcomes := make([]relay.Outcome, 256)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for code := worker; code < len(outcomes); code += 4 {
				outcomes[code] = s.Send(within(t, generous), newMessage(strconv.Itoa(code)))
			}
		})
	}
	all.Wait()
	var fates []string
	codes := map[string][]string{}
	for code, o := range outcomes {
		if o.Status != code {
			t.Errorf("exit code %d: %+v", code, o)
		}
		fate := fateOf(o)
		if codes[fate] == nil {
			fates = append(fates, fate)
		}
		if of := codes[fate]; code > 0 && len(of) > 0 && fateOf(outcomes[code-1]) == fate {
			from, _, _ := strings.Cut(of[len(of)-1], "–")
			of[len(of)-1] = from + "–" + strconv.Itoa(code)
		} else {
			codes[fate] = append(of, strconv.Itoa(code))
		}
	}
	var b strings.Builder
	b.WriteString("| Exit code | Outcome | `error_class` | `attempts` | Then | In the end |\n|---|---|---|---|---|---|\n")
	for _, fate := range fates {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(codes[fate], ", "), fate)
	}
	return b.String()
}

// endTable has a row for every other way in which a send can end.
func endTable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short := func(c *Config) { c.Grace = 500 * time.Millisecond }
	inNoDir := func(c *Config) { c.Dir = dir + "/none" }
	self := script("self", "#!/bin/sh\n[ $1 = program-hold ] || exec cat", 0o755)
	neverBegins := func(c *Config) { c.Self = self }
	late := newMessage("a")
	late.StartBy = time.Now()
	unspeakable := newMessage("a")
	unspeakable.AggregateID = new("a\x00b")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	closed := shell(t, nil, "exit 0")
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := within(t, time.Second)
	ends := []struct {
		what    string
		sink    *Sink
		ctx     context.Context
		message *relay.Message
	}{
		{"It does not exist", newSink(t, nil, dir+"/none"), t.Context(), newMessage("a")},
		{"Its name is in no folder of PATH", newSink(t, nil, "outboxd-none"), t.Context(), newMessage("a")},
		{"It is not executable", newSink(t, nil, script("mode", "#!/bin/sh\n", 0o644)), t.Context(), newMessage("a")},
		{"It is a folder", newSink(t, nil, dir), t.Context(), newMessage("a")},
		{"Its interpreter does not exist", newSink(t, nil, script("script", "#!/none\n", 0o755)), t.Context(), newMessage("a")},
		{"It is nothing that can be executed", newSink(t, nil, script("text", "hello\n", 0o755)), t.Context(), newMessage("a")},
		{"`dir` does not exist", shell(t, inNoDir, "exit 0"), t.Context(), newMessage("a")},
		{"It is ended before it was executed", shell(t, neverBegins, "exit 0"), t.Context(), newMessage("a")},
		{"The relay stops before it begins", shell(t, nil, "exit 0"), over, newMessage("a")},
		{"The message may have taken effect before, and the dedupe window is over", shell(t, nil, "exit 0"), t.Context(), late},
		{"Type or key have a NUL, or more than 64 KiB", shell(t, nil, "exit 0"), t.Context(), unspeakable},
		{"A signal of somebody else ends it", shell(t, nil, "kill -9 $$"), t.Context(), newMessage("a")},
		{"It crashes", shell(t, nil, "kill -SEGV $$"), t.Context(), newMessage("a")},
		{"It does not end within `timeout`, but by SIGTERM", shell(t, short, "exec sleep 600"), second, newMessage("a")},
		{"It does not end by SIGTERM either", shell(t, short, "trap '' TERM; sleep 600"), second, newMessage("a")},
		{"It ends with an exit code at SIGTERM, also 0", shell(t, short, "trap 'exit 0' TERM; sleep 600 & wait"), second, newMessage("a")},
	}
	rows := make([]string, len(ends))
	var all sync.WaitGroup
	for i, e := range ends {
		all.Go(func() {
			o := e.sink.Send(e.ctx, e.message)
			if o.Ours != (o.Kind == relay.KindFail) {
				t.Errorf("%s: %+v", e.what, o)
			}
			rows[i] = fmt.Sprintf("| %s | %s | %s |\n", e.what, o.Kind, code(o.Class))
			if strings.ContainsAny(o.Err, "\n") || o.Kind != relay.KindDone && o.Err == "" {
				t.Errorf("%s: %q", e.what, o.Err)
			}
			t.Logf("%s: %s", e.what, o.Err)
		})
	}
	all.Wait()
	return "| What happens to a program | Outcome | `error_class` |\n|---|---|---|\n" + strings.Join(rows, "")
}

// fateOf is what becomes of a message by its outcome, as the cells of a row: at its first send, and at its last.
func fateOf(o relay.Outcome) string {
	policy := relay.Policy{Budget: relay.DefaultBudget, Base: relay.DefaultBase, Cap: relay.DefaultCap}
	first := relay.Decide(relay.Try{Outcome: o, Policy: policy}).Row()
	charged, end := "–", "–"
	if first.Charge {
		charged = "+ 1"
	}
	if first.State == relay.Pending {
		attempts, when := relay.DefaultBudget, ""
		if o.Limit > 0 {
			attempts, when = o.Limit, " at attempt "+strconv.Itoa(o.Limit)
		}
		last := relay.Decide(relay.Try{Claim: relay.Claim{Attempts: attempts - 1}, Outcome: o, Policy: policy}).Row()
		if end = "it waits"; last.State != relay.Pending {
			end = next(last) + when
		}
	}
	return strings.Join([]string{string(o.Kind), code(o.Class), charged, next(first), end}, " | ")
}

func next(r relay.Row) string {
	switch {
	case r.State == relay.Finished:
		return "`done`"
	case r.State == relay.Failed:
		return fmt.Sprintf("`failed`, `%s`", r.Reason)
	case r.What == relay.WhatUnsent:
		return "`pending` for a tenth of its age"
	}
	return "`pending` for the back-off"
}

// code writes a word of the table's columns.
func code(word string) string {
	if word == "" {
		return "–"
	}
	return "`" + word + "`"
}
