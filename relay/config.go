package relay

import (
	"log/slog"
	"time"
)

// Config is all that a Relay is made of. New fills what is zero with the defaults of design.md section 11, and refuses
// what cannot work.
type Config struct {
	Name         string // of this relay, unique among those on the table; it is written into leases
	Database     Database
	Destinations []Destination
	Routes       []Route       // the first whose Match fits a routing key
	Lease        time.Duration // 1 s to 1 h, default 30 s; renewed at a third of it
	StopTimeout  time.Duration // how long running sends may go on after a stop, default 25 s
	Once         bool          // Run ends when nothing that it may claim is due or in flight
	Log          *slog.Logger
	Observe      func([]Event) // may be nil; called from several goroutines, must return at once

	Host, Version, ConfigHash string // what Beat tells of us
}

// Destination is a Sink and how hard it may be used.
type Destination struct {
	Name     string
	Sink     Sink
	Width    int  // sends at once: 1 or more
	PerKey   bool // a breaker for each routing key beside the destination's own, as Kafka has topics
	MaxBytes int  // payloads and headers in memory at once, default 32 MiB; a larger message goes alone
	Breaker  BreakerConfig
}

// BreakerConfig sets a breaker; zero values are the defaults of design.md section 5.
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
}
