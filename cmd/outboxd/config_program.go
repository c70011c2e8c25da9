package main

import (
	"time"

	"github.com/outboxd/outboxd/relay"
	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// memory is how long a program remembers a wire key, as the file says it: a duration, or never.
type memory string

func (memory) wants() string {
	return "how long the program remembers an OUTBOX_ID, such as 24h, and at least 1s; or never"
}

// programConfig says which local program is executed for each message.
type programConfig struct {
	Command  []string                 `yaml:"command,omitempty"` // argv; no shell reads it
	Dir      string                   `yaml:"dir,omitempty"`
	Env      []string                 `yaml:"env,omitempty"`    // names of variables of the relay that the program gets, too
	Dedupe   memory                   `yaml:"dedupe,omitempty"` // how long the program remembers a wire key, or never
	Grace    time.Duration            `yaml:"grace,omitempty"`  // between SIGTERM and SIGKILL
	Outcomes map[string]outcomeConfig `yaml:"outcomes,omitempty"`
}

func (p *programConfig) dedupe() relay.Dedupe { return window(p.Dedupe).dedupe() }

// graceIn is the grace of a program under a lease: where none is given, less under one that is very short.
func (p *programConfig) graceIn(lease time.Duration) time.Duration {
	return orElse(p.Grace, min(programsink.DefaultGrace, lease/4))
}
