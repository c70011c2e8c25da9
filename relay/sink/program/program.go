// Package program executes a local program for each message: its payload on stdin, what it is about in the environment, and
// the exit code as the answer. Start reading at Sink.Send; codeRule says which exit code is which outcome. hold_linux.go and
// guard_linux.go see to it that what a program started ends with the relay, however that ends.
package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// pipeDelay is how long a process that left the session may keep stdout and stderr open after the program itself has ended.
// With it and killDelay, Send comes back within the second after its deadline that the relay waits for.
const pipeDelay = 500 * time.Millisecond

// Sink is one program as a destination. Safe for concurrent use.
type Sink struct {
	cfg      Config
	place    *place
	secrets  *relay.Secrets
	sessions *sessions
}

var _ relay.Sink = (*Sink)(nil)

// New checks cfg and makes a Sink. It starts nothing. Its errors are as Validate's; that the program cannot be started is
// none, but a warning: it may come yet, and until then nothing is sent.
func New(cfg Config, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	sessions, err := newSessions(cfg.Self, log)
	if err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg, place: &place{name: cfg.Command[0]}, secrets: secretsOf(cfg.Env), sessions: sessions}
	if _, err := s.place.path(); err != nil {
		log.Warn("a program cannot be started yet", "err", err)
	}
	warnFirst(os.Getpid(), log)
	return s, nil
}

// warnFirst warns of a relay that is the first process of its container: what a program started and did not wait for becomes
// its child, and it waits for its own programs only.
func warnFirst(pid int, log *slog.Logger) {
	if pid == 1 {
		log.Warn("the relay is the first process of its container, where what programs leave behind stays as zombies; start it by an init process, as docker run --init does")
	}
}

// Send executes the program once for m and waits for its end. Grace before ctx's deadline its session gets SIGTERM, and at
// the deadline SIGKILL; where ctx ends earlier, SIGTERM at once and SIGKILL after CutOff. Nothing of the session is left when
// Send returns, but what the relay's user may not kill.
func (s *Sink) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	env, err := s.cfg.environment(m)
	if err != nil {
		o := relay.Fail(relay.Rejected, classInvalid, err.Error())
		o.Ours = true
		return o
	}
	path, err := s.place.path()
	if err == nil {
		err = directory(s.cfg.Dir)
	}
	if err != nil {
		return relay.Unsent(classProgram, err.Error())
	}
	out := newOutput(s.secrets)
	held, err := s.sessions.hold(&exec.Cmd{
		Path: path, Args: s.cfg.Command, Env: env, Dir: s.cfg.Dir, WaitDelay: pipeDelay,
		Stdin: bytes.NewReader(m.Payload), Stdout: &out.stdout, Stderr: &out.stderr,
	})
	if err != nil {
		return relay.Unsent(classProgram, path+" cannot be started: "+reason(err))
	}
	if ctx.Err() != nil {
		held.abandon()
		return relay.Unsent(classTimeout, "not started: the time was over before")
	}
	if !m.StartBy.IsZero() && !time.Now().Before(m.StartBy) {
		held.abandon()
		return relay.Unsent(classTimeout, "not started: it may have taken effect before, and its key may be forgotten by now")
	}
	p, err := held.release()
	if err != nil {
		return relay.Unsent(classProgram, path+" cannot be started: "+reason(err))
	}
	e := p.wait(ctx, s.cfg.Grace, s.cfg.CutOff)
	o := s.cfg.of(e)
	if e.unstarted == "" && !e.stuck {
		out.add(&o)
	}
	return o
}

// Close ends what is still under way, and with it the guard.
func (s *Sink) Close(ctx context.Context) error { return s.sessions.close(ctx) }
