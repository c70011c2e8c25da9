package integration

import (
	"strings"
	"testing"
	"time"
)

// operator has what somebody with all rights says to a server. {name} is the name of a database and of its only user.
type operator struct {
	create        []string
	drop          []string
	readOnly      []string
	writable      []string
	startReadOnly []string // arguments of a server that starts as a standby does
	full          string   // no session more for that user; superusers hold as many as holders
	holders       int
	roomy         string
	serializable  string        // the isolation of all sessions from now on
	hasty         string        // setting of a session that waits for a lock for a second
	waits         string        // counts what others wait for, where that user holds it
	look          time.Duration // how often that may be asked
	sessions      string        // of that user
	kill, killed  string        // what stands before and behind the number of a session
}

func (e engine) operator() operator {
	switch e.name {
	case "postgres":
		return operator{
			create:       []string{"CREATE ROLE {name} LOGIN", "CREATE DATABASE {name} OWNER {name}"},
			drop:         []string{"DROP DATABASE {name} WITH (FORCE)", "DROP ROLE {name}"},
			readOnly:     []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"},
			writable:     []string{"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"},
			serializable: "ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'",
			hasty:        "lock_timeout=1s",
			// The moment in which a table grows by some pages is not ours: every writer takes it.
			waits: `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
				CROSS JOIN unnest(pg_blocking_pids(l.pid)) AS by(pid) JOIN pg_stat_activity o ON o.pid = by.pid
				WHERE NOT l.granted AND l.locktype <> 'extend' AND a.usename <> '{name}' AND o.usename = '{name}'`,
			look:     10 * time.Millisecond,
			full:     "ALTER DATABASE {name} CONNECTION LIMIT 0",
			roomy:    "ALTER DATABASE {name} CONNECTION LIMIT -1",
			sessions: "SELECT pid FROM pg_stat_activity WHERE usename = '{name}'",
			kill:     "SELECT pg_terminate_backend(", killed: ")",
		}
	case "mysql":
		o := mysqlOperator()
		o.readOnly = []string{"SET GLOBAL super_read_only = ON"}
		o.startReadOnly = []string{"--super-read-only"}
		// By the lock on the table, which a transaction always takes itself: one on a row may be noted under the session
		// that first waited for it. Not by innodb_trx, which is as slow as on MariaDB.
		o.waits = `SELECT count(*) FROM performance_schema.data_lock_waits w
			JOIN performance_schema.data_locks l
				ON l.engine_transaction_id = w.blocking_engine_transaction_id AND l.lock_type = 'TABLE'
			JOIN performance_schema.threads a ON a.thread_id = w.requesting_thread_id
			JOIN performance_schema.threads o ON o.thread_id = l.thread_id
			WHERE a.processlist_user <> '{name}' AND o.processlist_user = '{name}'`
		o.look = 10 * time.Millisecond
		return o
	default:
		o := mysqlOperator()
		o.readOnly = []string{"SET GLOBAL read_only = ON"}
		o.startReadOnly = []string{"--read-only"}
		o.waits = `SELECT count(*) FROM information_schema.innodb_lock_waits w
			JOIN information_schema.innodb_trx a ON a.trx_id = w.requesting_trx_id
			JOIN information_schema.innodb_trx o ON o.trx_id = w.blocking_trx_id
			JOIN information_schema.processlist p ON p.id = a.trx_mysql_thread_id
			JOIN information_schema.processlist q ON q.id = o.trx_mysql_thread_id
			WHERE p.user <> '{name}' AND q.user = '{name}'`
		o.look = 120 * time.Millisecond // these tables are made anew only where nobody read them for a tenth of a second
		return o
	}
}

func mysqlOperator() operator {
	return operator{
		create: []string{
			"CREATE DATABASE {name}", "CREATE USER {name}@'%'", "GRANT ALL ON {name}.* TO {name}@'%'",
		},
		drop:         []string{"DROP DATABASE {name}", "DROP USER {name}@'%'"},
		writable:     []string{"SET GLOBAL read_only = OFF"},
		serializable: "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		hasty:        "innodb_lock_wait_timeout=1",
		full:         "SET GLOBAL max_connections = 10", // the least that MariaDB can do
		holders:      10,
		roomy:        "SET GLOBAL max_connections = 500",
		sessions:     "SELECT id FROM information_schema.processlist WHERE user = '{name}'",
		kill:         "KILL ",
	}
}

// order runs statements of an operator; the server has to take them.
func (d *database) order(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		d.exec(t, strings.ReplaceAll(statement, "{name}", d.name))
	}
}

// killSessions ends the sessions of the program.
func (d *database) killSessions(t *testing.T) {
	t.Helper()
	o := d.operator()
	for _, id := range d.texts(t, strings.ReplaceAll(o.sessions, "{name}", d.name)) {
		_, _ = d.ExecContext(t.Context(), o.kill+id+o.killed) // it may be gone
	}
}
