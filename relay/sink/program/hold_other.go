//go:build unix && !linux

package program

import (
	"context"
	"log/slog"
	"os/exec"
	"syscall"
)

// sessions starts programs in sessions of their own. There is no guard on this system: one outlives a relay that is killed.
type sessions struct{}

func newSessions(string, *slog.Logger) (*sessions, error) { return &sessions{}, nil }

func (*sessions) close(context.Context) error { return nil }

// held is a program that is to be started.
type held struct{ cmd *exec.Cmd }

func (*sessions) hold(cmd *exec.Cmd) (*held, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &held{cmd}, nil
}

func (*held) abandon() {}

// release starts it.
func (h *held) release() (*process, error) {
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = h.cmd.Wait() // the code is in ProcessState
	}()
	return &process{cmd: h.cmd, gone: gone, ended: func() {}}, nil
}
