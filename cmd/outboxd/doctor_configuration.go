package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// foundConfiguration judges what needs no database: the warnings that run would log, and the dedupe windows.
func foundConfiguration(l *loaded) []dialect.Finding {
	windows, said := foundWindows(l)
	var findings []dialect.Finding
	for _, words := range l.warnings {
		if !said[words] {
			findings = append(findings, dialect.Warn("configuration", "", "%s", words))
		}
	}
	if findings == nil {
		findings = append(findings, dialect.Fine("configuration", "it has no mistake, and nothing that is seldom meant"))
	}
	return append(findings, windows...)
}

// foundWindows compares how long each destination remembers a key with how long the tries of a message can go on, and has
// the warnings of the configuration that say the same.
func foundWindows(l *loaded) (findings []dialect.Finding, said map[string]bool) {
	said = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(l.config.Destinations)) {
		d := l.config.Destinations[name]
		if d.dedupe().Never {
			findings = append(findings, dialect.Fine("dedupe", "%s remembers no key: what may have taken effect there is never sent again, and ends failed, unknown", name))
		}
		if d.dedupe().Window > 0 {
			findings = append(findings, l.foundWindow(name, said))
		}
	}
	return findings, said
}

// foundWindow judges the policy of a destination whose tries can go on for the longest time.
func (l *loaded) foundWindow(name string, said map[string]bool) dialect.Finding {
	const check = "dedupe"
	window := l.config.Destinations[name].dedupe().Window
	worst, where := l.policy(&routeConfig{To: name}, ""), ""
	for i := range l.config.Routes {
		r := &l.config.Routes[i]
		if r.To != name {
			continue
		}
		for _, key := range r.policyKeys() {
			p := l.policy(r, key)
			said[policyPath(i, key)+": "+windowWords(p, window)] = true
			if where == "" || longestTries(p) > longestTries(worst) {
				worst, where = p, policyPath(i, key)
			}
		}
	}
	if where == "" {
		return dialect.Fine(check, "%s remembers a key for %s, and no route leads there", name, short(window))
	}
	longest := roughly(longestTries(worst))
	tries := fmt.Sprintf("%d tries of %s, and %s to %s of back-off between them", worst.Budget, short(worst.Timeout),
		roughly(backoffs(worst)/2), roughly(backoffs(worst)))
	if windowWords(worst, window) == "" {
		return dialect.Fine(check, "%s remembers a key for %s; the tries of %s end within %s, if nobody asks for longer waits: %s",
			name, short(window), where, longest, tries)
	}
	return dialect.Warn(check, "lower budget or cap there, or have the receiver remember for longer and say so in dedupe",
		"%s remembers a key for %s, and the tries of %s can go on for %s: %s. What may have taken effect is not sent again past the window, "+
			"and ends failed, unknown", name, short(window), where, longest, tries)
}

// roughly is a length of time in whole minutes, or in seconds where it is short.
func roughly(d time.Duration) string {
	if d >= 10*time.Minute {
		return short(d.Round(time.Minute))
	}
	return short(d.Round(time.Second))
}
