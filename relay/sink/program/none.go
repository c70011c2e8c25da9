//go:build !unix

package program

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"time"
)

var errNoGroups = errors.New("program: this system has no process groups, so that programs are not executed on it")

// groups are what this system does not have.
type groups struct{}

func newGroups(string, *slog.Logger) (*groups, error) { return nil, errNoGroups }

func (*groups) close(context.Context) error { return nil }

func (*groups) hold(*exec.Cmd) (*held, error) { return nil, errNoGroups }

type held struct{}

func (*held) abandon() {}

func (*held) release() (*process, error) { return nil, errNoGroups }

type process struct{}

func (*process) wait(context.Context, time.Duration, time.Duration) end { return end{} }
