//go:build linux

package program

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestEnvironment holds the environment to what is stated, to the last variable, whatever a message has in it.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	hostile := "; rm -rf \"$(id)\" `id` --live\n'é'"
	plain, full := newMessage("a"), newMessage("b")
	full.Type, full.AggregateType, full.AggregateID = hostile, &hostile, new("")
	full.SchemaVersion, full.Attempts, full.Traceparent = 7, 2, trace
	full.Headers = []relay.Header{{Name: "PATH", Value: "/tmp"}, {Name: "LD_PRELOAD", Value: "x"}}
	untraced := newMessage("c")
	untraced.Traceparent = "00-hello"
	base := []string{"OUTBOX_ATTEMPT=1", "OUTBOX_SCHEMA_VERSION=1", "OUTBOX_TYPE=charge_order", "PATH=" + Path}
	for name, c := range map[string]struct {
		env     map[string]string
		message *relay.Message
		want    []string
	}{
		"plain":            {nil, plain, append([]string{"OUTBOX_ID=a"}, base...)},
		"no traceparent":   {nil, untraced, append([]string{"OUTBOX_ID=c"}, base...)},
		"of the relay":     {map[string]string{"LANG": "C", "key": "a=b"}, plain, append([]string{"LANG=C", "key=a=b", "OUTBOX_ID=a"}, base...)},
		"a PATH of theirs": {map[string]string{"PATH": "/opt"}, plain, append([]string{"OUTBOX_ID=a", "PATH=/opt"}, base[:3]...)},
		"full": {nil, full, []string{
			"OUTBOX_ID=b", "OUTBOX_TYPE=" + hostile, "OUTBOX_AGGREGATE_TYPE=" + hostile, "OUTBOX_AGGREGATE_ID=",
			"OUTBOX_SCHEMA_VERSION=7", "OUTBOX_ATTEMPT=3", "TRACEPARENT=" + trace, "PATH=" + Path,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t, func(c2 *Config) { c2.Env = c.env }, "/usr/bin/env", "-0")
			o := s.Send(within(t, generous), c.message)
			wantKind(t, o, relay.KindDone, "")
			text := max(o.Answer, o.Result)                              // a short one is a result
			got := strings.Split(strings.Trim(text, "\uFFFD"), "\uFFFD") // a NUL is told so
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// TestArguments holds that argv is the configuration's, as it is.
func TestArguments(t *testing.T) {
	t.Parallel()
	s := newSink(t, nil, "/bin/cat", "/proc/self/cmdline")
	if o := send(t, s); o.Result != "/bin/cat\uFFFD/proc/self/cmdline\uFFFD" {
		t.Errorf("%+v", o)
	}
	s = newSink(t, nil, "echo", "$OUTBOX_ID", "`id`", "; id")
	if o := send(t, s); o.Result != "$OUTBOX_ID `id` ; id" {
		t.Errorf("%+v", o)
	}
}

// TestPayload holds that every byte arrives, however many there are, and that a program need not read them.
func TestPayload(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("\x00\xff\r\n0123456789ab"), 10<<20/16)
	sum := fmt.Sprintf("%x", sha256.Sum256(large))
	for name, c := range map[string]struct {
		script  string
		payload []byte
		want    string
	}{
		"read":                   {"exec sha256sum", large, sum + "  -"},
		"NULL":                   {"exec wc -c", nil, "0"},
		"not read":               {"echo ok", large, "ok"},
		"closed at once":         {"exec <&-; echo ok", large, "ok"},
		"read in part":           {"head -c 3 | wc -c; echo more", large, "3"},
		"held by another":        {"sleep 600 <&0 & echo ok", large, "ok"},
		"held outside the group": {outside("exec sleep 600 <&0") + "echo ok", large, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			m := newMessage("a")
			m.Payload = c.payload
			s := shell(t, mark.env, c.script)
			o := s.Send(within(t, generous), m)
			wantKind(t, o, relay.KindDone, "")
			if o.Result != c.want {
				t.Errorf("result %q, want %q", o.Result, c.want)
			}
		})
	}
}

// TestInheritsNothing holds that a program has stdin, stdout and stderr, and no other file, and that no signal is blocked or
// ignored.
func TestInheritsNothing(t *testing.T) {
	t.Parallel()
	if o := send(t, newSink(t, nil, "ls", "-m", "/proc/self/fd")); o.Result != "0, 1, 2, 3" { // 3 is that folder
		t.Errorf("%+v", o)
	}
	o := send(t, newSink(t, nil, "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"))
	var blocked, ignored uint64
	_, err := fmt.Sscanf(o.Answer, "SigBlk:\t%x\nSigIgn:\t%x\n", &blocked, &ignored)
	const ordinary = 1<<31 - 1 // those from 32 on are the C library's own, which the race detector brings
	if err != nil || (blocked|ignored)&ordinary != 0 {
		t.Errorf("%v, %+v", err, o)
	}
}

// TestDir holds where a program starts.
func TestDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, change := range map[string]func(*Config){"/": nil, dir: func(c *Config) { c.Dir = dir }} {
		if o := send(t, newSink(t, change, "pwd")); o.Result != want {
			t.Errorf("%+v, want %s", o, want)
		}
	}
}

// TestStartBy holds that what may have taken effect does not begin once its key may be forgotten.
func TestStartBy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "began")
	s := shell(t, nil, "echo >"+file)
	m := newMessage("a")
	m.StartBy = time.Now()
	wantKind(t, s.Send(within(t, generous), m), relay.KindUnsent, classTimeout, "not started")
	if _, err := os.Stat(file); err == nil {
		t.Error("it began")
	}
	m.StartBy = time.Now().Add(generous)
	wantKind(t, s.Send(within(t, generous), m), relay.KindDone, "")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestManyAtOnce holds that sends do not meet: each has its own message, answer and error.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := shell(t, nil, `cat; echo "$OUTBOX_ID" >&2; exit $((OUTBOX_ATTEMPT % 2 * 3))`)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			m := newMessage(strconv.Itoa(i))
			m.Attempts = i
			o := s.Send(within(t, generous), m)
			text := `{"id":"` + m.ID + `"}`
			if i%2 == 1 && (o.Kind != relay.KindDone || o.Result != text) ||
				i%2 == 0 && (o.Kind != relay.KindRetry || o.Answer != text || o.Err != "exit code 3: "+m.ID) {
				t.Errorf("%d: %+v", i, o)
			}
		})
	}
	all.Wait()
}
