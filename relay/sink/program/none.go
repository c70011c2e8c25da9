//go:build !unix

package program

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"time"
)

var errNoSessions = errors.New("program: this system has no sessions of processes, so that programs are not executed on it")

// sessions are what this system does not have.
type sessions struct{}

func newSessions(string, *slog.Logger) (*sessions, error) { return nil, errNoSessions }

func (*sessions) close(context.Context) error { return nil }

func (*sessions) hold(*exec.Cmd) (*held, error) { return nil, errNoSessions }

type held struct{}

func (*held) abandon() {}

func (*held) release() (*process, error) { return nil, errNoSessions }

type process struct{}

func (*process) wait(context.Context, time.Duration, time.Duration) end { return end{} }
