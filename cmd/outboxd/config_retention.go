package main

import (
	"errors"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// retentionConfig says how long what is over is kept.
type retentionConfig struct {
	Done       keepFor `yaml:"done,omitempty"`       // messages, after they were done
	Resolved   keepFor `yaml:"resolved,omitempty"`   // failed messages, after they were resolved
	Attempts   keepFor `yaml:"attempts,omitempty"`   // after their end
	Operations keepFor `yaml:"operations,omitempty"` // after they were applied
}

// keepFor is how long something is kept, as the file says it: a duration, or never as the time to remove it.
type keepFor string

func (keepFor) wants() string { return "a duration with its unit, such as 168h, or never" }

// span reads it; 0: the default.
func (k keepFor) span() (time.Duration, error) {
	switch k {
	case "":
		return 0, nil
	case keepFor(never):
		return relay.Forever, nil
	}
	d, err := time.ParseDuration(string(k))
	if err != nil || d < time.Second {
		return 0, errors.New("wants " + k.wants())
	}
	return d, nil
}

// keep is what package relay takes; what is wrong or missing is its default.
func (c retentionConfig) keep() (r relay.Retention) {
	r.Done, _ = c.Done.span() // checked already
	r.Resolved, _ = c.Resolved.span()
	r.Attempts, _ = c.Attempts.span()
	r.Operations, _ = c.Operations.span()
	return r.Or(relay.DefaultRetention())
}

func (l *loaded) checkRetention() {
	c := l.config.Retention
	for key, k := range map[string]keepFor{"done": c.Done, "resolved": c.Resolved, "attempts": c.Attempts, "operations": c.Operations} {
		if _, err := k.span(); err != nil {
			l.fail("retention."+key, "%s", err)
		}
	}
}

// keepWords is a span as the file says it.
func keepWords(d time.Duration) string {
	if d == relay.Forever {
		return string(never)
	}
	return d.String()
}
