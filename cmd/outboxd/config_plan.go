package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/outboxd/outboxd/relay"
	programsink "github.com/outboxd/outboxd/relay/sink/program"
	"github.com/outboxd/outboxd/relay/sink/webhook"
)

// Sends under way at once, where the configuration says nothing. Kafka batches what is under way: four claims' worth.
const (
	kafkaWidth  = 2000
	stdoutWidth = 500
)

// plan is the part of the relay's configuration that a reload can change: the routes with their policies, and the limits of
// each destination, without its sink.
func (l *loaded) plan() relay.Config {
	c := l.config
	rc := relay.Config{ConfigHash: c.hash()}
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		rc.Destinations = append(rc.Destinations, c.Destinations[name].limits(name))
	}
	for i := range c.Routes {
		r := &c.Routes[i]
		route := relay.Route{Match: r.Match, To: r.To, Policy: l.sendPolicy(r, ""), Types: map[string]relay.Policy{}}
		for name := range r.Types {
			route.Types[name] = l.sendPolicy(r, name)
		}
		rc.Routes = append(rc.Routes, route)
	}
	return rc
}

// limits say how hard a destination may be used.
func (d destinationConfig) limits(name string) relay.Destination {
	rd := relay.Destination{
		Name: name, Width: orElse(d.Width, stdoutWidth), Dedupe: d.dedupe(),
		Breaker: relay.BreakerConfig{Run: d.Breaker.Run, Pause: d.Breaker.Pause, Cap: d.Breaker.Cap},
	}
	rd.Rate, _ = d.Rate.perSecond() // checked already
	switch {
	case d.Kafka != nil:
		rd.Width, rd.PerKey = orElse(d.Width, kafkaWidth), true
	case d.Webhook != nil:
		rd.Width, rd.Shared = orElse(d.Width, webhook.DefaultWidth), true
	case d.Program != nil:
		rd.Width, rd.Shared = orElse(d.Width, programsink.DefaultWidth), true
	}
	return rd
}

// hash tells configurations apart that route or send differently; secrets are no part of it.
func (c config) hash() string {
	text, err := yaml.Marshal(struct {
		Destinations map[string]destinationConfig `yaml:"destinations"`
		Routes       []routeConfig                `yaml:"routes"`
	}{c.Destinations, c.Routes})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:12]
}
