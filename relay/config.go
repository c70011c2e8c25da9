package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// The defaults of relay/DESIGN.md, Defaults.
const (
	DefaultLease       = 30 * time.Second
	DefaultStopTimeout = 25 * time.Second
	DefaultBudget      = 20
	DefaultBase        = time.Second
	DefaultCap         = time.Hour
	DefaultTimeout     = 30 * time.Second
	defaultMaxBytes    = 32 << 20
	shortestLease      = time.Second
)

// Config is all that a Relay is made of. New fills what is zero with the defaults of relay/DESIGN.md, Defaults, and refuses
// what cannot work.
type Config struct {
	Name         string // of this relay, unique among those on the table; it is written into leases
	Database     Database
	Destinations []Destination
	Routes       []Route       // the first whose Match fits a routing key
	Lease        time.Duration // 1 s to 1 h, default 30 s; renewed at a third of it
	StopTimeout  time.Duration // how long running sends may go on after a stop, default 25 s
	MaxActive    int           // how many relays may work on the table at once, the rest stand by; 0: all
	Instance     string        // of the application, for which the Database is made; an outbox that belongs to another one is left alone. "": none
	Retention    Retention
	Paused       string // names a start: before its first claim everything is paused, once, until somebody resumes it; "": nothing is
	Once         bool   // Run ends when nothing that it may claim is due or in flight
	Log          *slog.Logger
	Observe      func([]Event) // may be nil; called from several goroutines, must return at once

	Host, Version, ConfigHash string // what Beat tells of us
}

// Destination is a Sink and how hard it may be used.
type Destination struct {
	Name     string
	Sink     Sink
	Width    int     // sends at once: 1 or more
	Rate     float64 // sends a second; 0: as many as there are
	Shared   bool    // Width and Rate are of all relays together that serve it: divided by those that are alive
	PerKey   bool    // a breaker for each routing key beside the destination's own, as Kafka has topics
	MaxBytes int     // payloads and headers in memory at once, default 32 MiB; a larger message goes alone
	Dedupe   Dedupe
	Breaker  BreakerConfig
}

// Dedupe is how long a destination remembers a wire key, so that what may have taken effect can be sent again. Its zero
// value is of one that needs no memory.
type Dedupe struct {
	Window time.Duration
	Never  bool // it remembers none: nothing that may have taken effect is sent again
}

// over tells that the destination may have forgotten the key of a message that may have taken effect so long ago.
func (d Dedupe) over(since time.Duration) bool { return d.Never || d.Window > 0 && since >= d.Window }

// BreakerConfig sets a breaker; zero values are the defaults of relay/DESIGN.md, Breaker.
type BreakerConfig struct {
	Run   int           // outcomes in a row that open it, default 5
	Pause time.Duration // before the first probe, default 1 s, doubling
	Cap   time.Duration // of that pause, default 30 s
}

// Route sends messages of matching routing keys to a destination.
type Route struct {
	Match  string // a routing key, a prefix and "*", or "*"
	To     string // a destination's name
	Policy Policy
	Types  map[string]Policy // by exact type, or by the longest prefix and "*"; a type that is not here has the route's Policy
}

// Policy bounds what a type of message may cost.
type Policy struct {
	Budget   int           // charged sends of a life, default 20
	Base     time.Duration // back-off before the second try, default 1 s
	Cap      time.Duration // longest back-off, default 1 h
	Timeout  time.Duration // of one send, default 30 s
	Versions []int         // accepted schema versions; empty: all
	Emit     Emit          // what tells the application that a message is final
}

// Emit is a message that the relay writes when another one becomes done or failed, in the same transaction, so that nobody
// has to poll: the other's aggregateid and traceparent, and its state, reason and result as a JSON payload. Its zero value
// is none.
type Emit struct {
	Type          string
	AggregateType string // "": NULL, so that it takes the route of its type
}

// complete fills in the defaults and checks the rest.
func (cfg *Config) complete() error {
	fill(&cfg.Lease, DefaultLease)
	fill(&cfg.StopTimeout, DefaultStopTimeout)
	cfg.Retention = cfg.Retention.Or(DefaultRetention())
	fill(&cfg.Log, slog.New(slog.DiscardHandler))
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(cfg.Name != "", "relay: name is empty")
	check(cfg.Database != nil, "relay: no database")
	check(cfg.Lease >= shortestLease && cfg.Lease <= time.Hour, "relay: lease %s is not within 1s and 1h", cfg.Lease)
	check(len(cfg.Routes) > 0, "relay: no routes")
	check(cfg.MaxActive >= 0, "relay: max active %d is negative", cfg.MaxActive)
	cfg.Destinations, cfg.Routes = slices.Clone(cfg.Destinations), slices.Clone(cfg.Routes)
	names := map[string]bool{}
	for i := range cfg.Destinations {
		d := &cfg.Destinations[i]
		d.complete()
		check(!names[d.Name] && d.Name != "", "relay: destination %q: the name is empty or used twice", d.Name)
		check(d.Sink != nil && d.Width > 0, "relay: destination %q: no sink, or a width below 1", d.Name)
		names[d.Name] = true
	}
	for i := range cfg.Routes {
		route := &cfg.Routes[i]
		check(names[route.To], "relay: route %q: destination %q does not exist", route.Match, route.To)
		route.Policy.complete()
		types := make(map[string]Policy, len(route.Types))
		for name, p := range route.Types {
			p.complete()
			types[name] = p
		}
		route.Types = types
	}
	return errors.Join(errs...)
}

func (d *Destination) complete() {
	fill(&d.MaxBytes, defaultMaxBytes)
	fill(&d.Breaker.Run, 5)
	fill(&d.Breaker.Pause, time.Second)
	fill(&d.Breaker.Cap, 30*time.Second)
}

func (p *Policy) complete() {
	fill(&p.Budget, DefaultBudget)
	fill(&p.Base, DefaultBase)
	fill(&p.Cap, DefaultCap)
	fill(&p.Timeout, DefaultTimeout)
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
