package main

import (
	"time"

	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// sink is the sink's configuration, with the variables that the relay's environment has.
func (p *programConfig) sink(lease time.Duration, env lookup) programsink.Config {
	c := programsink.Config{
		Command: p.Command, Dir: p.Dir, Env: map[string]string{}, Grace: p.graceIn(lease), Outcomes: rules(p.Outcomes),
		CutOff: min(programsink.DefaultCutOff, lease/20), // half of what is left of a lease when its sends are cut off
		Self:   "/proc/self/exe",                         // the very same program, also when its file was replaced meanwhile
	}
	for _, name := range p.Env {
		if value, there := env(name); there {
			c.Env[name] = value
		}
	}
	return c
}

// programSink makes the sink of a destination.
func (l *loaded) programSink(name string, p parts) (*programsink.Sink, error) {
	path, c := join("destinations", name)+".program", l.config.Destinations[name].Program
	for _, variable := range c.Env {
		if _, there := p.env(variable); !there {
			p.log.Warn("a variable that a program is to get is not set", "destination", name, "variable", variable)
		}
	}
	known := len(l.problems)
	sink, err := programsink.New(c.sink(l.config.Relay.Lease, p.env), p.log)
	if err != nil {
		if l.failEach(path, "program.", err); len(l.problems) == known {
			l.fail(path, "%s", err)
		}
		return nil, &configError{file: l.file, problems: l.problems}
	}
	return sink, nil
}
