package main

import (
	"context"
	"fmt"
	"io"

	"github.com/outboxd/outboxd/cmd/outboxd/receive"
	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Bounds of a comparison.
const (
	missingPage  = 1000 // messages that are read at once
	missingShown = 20   // are named
)

// expectation is the messages that should have had an effect.
type expectation struct {
	db     inspectorCloser
	routes []routeConfig
	to     string // a destination; empty: all messages
}

type inspectorCloser interface {
	inspector
	Close() error
}

// expectMessages opens the database, so that what is wrong with it shows before anything is received.
func (p *program) expectMessages(to string) (*expectation, error) {
	l, err := p.load()
	if err != nil {
		return nil, err
	}
	if _, there := l.config.Destinations[to]; to != "" && !there {
		return nil, usagef("--to: the configuration has no destination %q", to)
	}
	db, err := l.openDatabase(p.env)
	if err != nil {
		return nil, err
	}
	return &expectation{db: db, routes: l.config.Routes, to: to}, nil
}

// wants tells whether a message should have had an effect. One that somebody resolved, or that was cancelled or expired,
// needs none.
func (e *expectation) wants(m dialect.Listed) bool {
	if m.ResolvedAt != nil {
		return false
	}
	return e.to == "" || destinationOf(e.routes, m.RoutingKey) == e.to
}

// compare names the messages without an effect, and says what is wrong.
func (e *expectation) compare(ctx context.Context, r *receive.Receiver, out io.Writer) (wrong []string, err error) {
	missing, cursor := 0, ""
	for {
		page, err := e.db.List(ctx, relay.Filter{}, missingPage, cursor)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Messages {
			there, err := e.there(ctx, r, m)
			if err != nil {
				return nil, err
			}
			if there {
				continue
			}
			if missing++; missing <= missingShown {
				fmt.Fprintf(out, "missing  %s  %s  %s\n", m.ID, m.Type, m.State)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if missing > missingShown {
		fmt.Fprintf(out, "missing  and %d more\n", missing-missingShown)
	}
	if missing > 0 {
		wrong = append(wrong, messages(missing, false)+" had no effect here")
	}
	return wrong, nil
}

// there tells whether a message had its effect, or needs none. One that was sent again under a new key has it under that.
func (e *expectation) there(ctx context.Context, r *receive.Receiver, m dialect.Listed) (bool, error) {
	if !e.wants(m) || r.Did(m.ID) {
		return true, nil
	}
	found, _, err := e.db.Get(ctx, m.ID)
	if err != nil {
		return false, err
	}
	return found.SendID != nil && r.Did(*found.SendID), nil
}
