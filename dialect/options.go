package dialect

import "time"

// Options says how to reach a database and how to behave there.
type Options struct {
	URL      string        // postgres://user:password@host:port/database?setting=value, mysql://… or sqlite:path
	Schema   string        // where the tables are; MySQL: the database; empty: where the URL leads to
	Name     string        // of the relay, for the server's list of sessions; empty for a person's commands
	Lease    time.Duration // of the relay: time-outs are fractions of it; 0 for a person's commands, which have none
	Insecure bool          // connect without TLS off loopback, too
	Pooler   bool          // PostgreSQL only: a pooler in transaction mode stands between, so no prepared statements and no session settings
}
