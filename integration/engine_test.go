package integration

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/outbox"
)

// engine is a kind of database, and what the tests say to it in its own words.
type engine struct {
	name   string
	helper outbox.Dialect
	driver string
	empty  func(*testing.T, engine) *database // makes a database without any table, for one test
	open   func(dialect.Options) (opened, error)

	lease time.Duration // the shortest that it can have
	proxy func(t *testing.T, server string) (*proxy, string)
	said  statements // to be waited for in the proxy
	words *strings.Replacer
	odd   oddities
}

// statements are what the relay says to an engine, as a proxy in front of it knows them again.
type statements struct {
	claimed func(part) bool // the answer to a claim that brought messages: not the check of its plan, not a look in vain
	load    string
	settle  string
	watch   string // the look at the leases
}

func engines() []engine {
	return []engine{postgresEngine(), mysqlEngine("mysql"), mysqlEngine("mariadb"), sqliteEngine()}
}

// onEngines runs a test on each of the engines, side by side.
func onEngines(t *testing.T, test func(*testing.T, engine)) {
	t.Helper()
	on(t, engines(), test)
}

// onServers leaves out SQLite: there is no network to it, one writer at a time, and no row to lock.
func onServers(t *testing.T, test func(*testing.T, engine)) {
	t.Helper()
	on(t, slices.DeleteFunc(engines(), func(e engine) bool { return e.proxy == nil }), test)
}

func on(t *testing.T, engines []engine, test func(*testing.T, engine)) {
	t.Helper()
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// leaseOf is the lease, or the shortest that the engine can have if that is longer.
func (e engine) leaseOf(lease time.Duration) time.Duration { return max(lease, e.lease) }

// plainConfig is that with a lease that the engine can have.
func (e engine) plainConfig() string {
	return strings.Replace(plainConfig, "lease: 2s", "lease: "+e.leaseOf(2*time.Second).String(), 1)
}

// sql is a query in the engine's own words. What stands in braces is explained by words; arguments are $1, $2 and so on,
// each once and in this order.
func (e engine) sql(query string) string {
	query = e.words.Replace(query)
	if e.driver == "postgres" {
		return query
	}
	return argument.ReplaceAllString(query, "?")
}

var argument = regexp.MustCompile(`\$\d+`)
