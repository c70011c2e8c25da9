package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	programsink "github.com/outboxd/outboxd/relay/sink/program"
)

// checkProgram finds what is ours to know of a program; its own Validate finds the rest.
func (l *loaded) checkProgram(path string, p *programConfig) {
	l.checkMemory(path+".dedupe", p.dedupe(), p.Dedupe.wants())
	for i, name := range p.Env {
		here := fmt.Sprintf("%s.env[%d]", path, i)
		switch {
		case !programsink.IsVariable(name):
			l.fail(here, "wants the name of a variable; its value is taken from the relay's own environment")
		case programsink.IsOfMessage(name):
			l.fail(here, "is set by the relay for each message; take it out")
		case strings.HasPrefix(name, "OUTBOXD_") || l.leadsToDatabase(name):
			l.fail(here, "is the relay's own; give the program a variable of another name")
		case slices.Contains(p.Env[:i], name):
			l.fail(here, "is named twice; keep one of them")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Outcomes)) {
		if !programsink.IsExitCode(key) {
			l.fail(join(path+".outcomes", key), `wants an exit code, 0 to 255, such as "3"`)
		}
		l.checkOutcome(join(path+".outcomes", key), p.Outcomes[key])
	}
	if lease := l.config.Relay.Lease; l.set(path+".grace") && (p.Grace <= 0 || p.Grace >= lease/3) {
		l.fail(path+".grace", "wants less than a third of relay.lease, which is %s, and more than 0", short(lease))
	}
	l.failEach(path, "program.", p.sink(l.config.Relay.Lease, nothingSet).Validate())
}

// nothingSet stands for the environment before the start.
func nothingSet(string) (string, bool) { return "", false }

// leadsToDatabase tells whether the URL of the relay's database came from a variable.
func (l *loaded) leadsToDatabase(name string) bool {
	return name == l.config.Database.URLEnv || l.origins["database.url"] == "environment "+name
}
