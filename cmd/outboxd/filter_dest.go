package main

import (
	"github.com/spf13/pflag"

	"github.com/outboxd/outboxd/relay"
)

// destFlag is the flag for messages by where the configuration sends them.
func destFlag(flags *pflag.FlagSet, dest *string) {
	flags.StringVar(dest, "dest", "", "only what the configuration's routes send to this `destination`")
}

// openFiltered opens the database for a list. Which routing keys a destination has, only the configuration says.
func (p *program) openFiltered(f *relay.Filter, dest string) (database, error) {
	l, err := p.load()
	if err != nil {
		return nil, err
	}
	if dest != "" {
		if _, there := l.config.Destinations[dest]; !there {
			return nil, usagef("--dest: the configuration has no destination %q: name its file with -c", dest)
		}
		for _, r := range l.config.Routes {
			f.Routes = append(f.Routes, relay.RouteRule{Match: r.Match, Takes: r.To == dest})
		}
	}
	return l.openDatabase(p.env)
}
