package main

import "sync/atomic"

// hangups hand SIGHUP to a command that reloads its configuration at it. Without one that listens, nil among them, the
// signal means what it means to every program.
type hangups struct {
	heard  chan struct{}
	wanted atomic.Bool
}

func newHangups() *hangups { return &hangups{heard: make(chan struct{}, 1)} }

// listen is called by a command that reloads. What it returns is never closed.
func (h *hangups) listen() <-chan struct{} {
	if h == nil {
		return nil
	}
	h.wanted.Store(true)
	return h.heard
}

// tell hands a signal on, and tells whether anybody listens. Signals that come while one waits to be heard are one.
func (h *hangups) tell() bool {
	if h == nil || !h.wanted.Load() {
		return false
	}
	select {
	case h.heard <- struct{}{}:
	default:
	}
	return true
}
