package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// lookAtSettings tells what the server gives to sessions that set nothing, and how it logs. A binary log of statements
// was refused before.
func lookAtSettings(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	variables, err := globals(ctx, q)
	return foundSettings(variables), err
}

func foundSettings(variables map[string]string) []dialect.Finding {
	isolation := variables["transaction_isolation"]
	if isolation == "" {
		isolation = variables["tx_isolation"] // MariaDB before 11.1
	}
	zone := variables["time_zone"]
	if zone == "SYSTEM" {
		zone = variables["system_time_zone"]
	}
	findings := []dialect.Finding{dialect.Fine("session defaults", "isolation %s, time zone %s; relays set READ COMMITTED and UTC for themselves", isolation, zone)}
	if zone != "UTC" && zone != "+00:00" {
		findings[0].What += ", and an application that delays a message counts from UTC_TIMESTAMP(6), never from NOW()"
	}
	log := "off"
	if variables["log_bin"] == "ON" {
		log = "on, of format " + variables["binlog_format"]
	}
	findings = append(findings, dialect.Fine("binary log", "it is %s", log))
	if flush := variables["innodb_flush_log_at_trx_commit"]; flush != "1" {
		findings = append(findings, dialect.Warn("durability", "set innodb_flush_log_at_trx_commit = 1 on the server",
			"innodb_flush_log_at_trx_commit is %s: a crash of the server can undo a commit whose message was sent already", flush))
	}
	if variables["wsrep_on"] == "ON" {
		findings = append(findings, dialect.Warn("cluster", "let all relays use the same node",
			"the server is a node of a Galera cluster, and a claim does not lock its messages on the others"))
	}
	return findings
}

// sqlHolders are InnoDB's transactions, the oldest first. trx_started is in the server's own zone, whatever the session's is.
// Argument: seconds.
const sqlHolders = `
SELECT t.trx_mysql_thread_id AS thread, COALESCE(p.USER, '') AS user, COALESCE(p.HOST, '') AS host, COALESCE(p.COMMAND, '') AS command,
  t.trx_isolation_level AS isolation, CAST(TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) AS SIGNED) * 1000000 AS held
FROM information_schema.INNODB_TRX t LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE t.trx_mysql_thread_id <> CONNECTION_ID() AND t.trx_started <= NOW() - INTERVAL ? SECOND
ORDER BY t.trx_started LIMIT 20`

// lookAtHolds takes a connection for itself, whose time zone it changes for this one query.
func (d *DB) lookAtHolds(ctx context.Context, older time.Duration) (findings []dialect.Finding, err error) {
	conn, err := d.work.Connx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "SET time_zone = 'SYSTEM'"); err != nil {
		return nil, err
	}
	var found []struct {
		Thread                         uint64
		User, Host, Command, Isolation string
		Held                           dialect.Age
	}
	err = sqlx.SelectContext(ctx, conn, &found, sqlHolders, seconds(older))
	if _, back := conn.ExecContext(ctx, "SET time_zone = '+00:00'"); err == nil {
		err = back
	}
	if err != nil {
		return nil, err
	}
	var holds []dialect.Hold
	for _, t := range found {
		hold := dialect.Hold{
			Name: fmt.Sprintf("the transaction of thread %d", t.Thread), For: t.Held, More: strings.Join([]string{"user " + t.User, "at " + t.Host, t.Command, t.Isolation}, ", "),
			End: fmt.Sprintf("commit sooner in that application, or end the session: KILL %d", t.Thread),
		}
		if t.Thread == 0 {
			hold.Name, hold.More, hold.End = "a prepared XA transaction", "", "find it by XA RECOVER, and XA COMMIT or XA ROLLBACK it"
		}
		holds = append(holds, hold)
	}
	return dialect.FoundHolds(holds, older), nil
}

// lookAtReplicas tells whether this server is a replica that takes writes, and whether others follow it.
func lookAtReplicas(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	s, err := checkServer(ctx, q)
	if err != nil {
		return nil, err
	}
	query := "SHOW REPLICA STATUS"
	if s.before(server{"MySQL", 8, 0, 22}) {
		query = "SHOW SLAVE STATUS"
	}
	rows, err := q.QueryxContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has told what went wrong.
	sources := 0
	for rows.Next() {
		sources++
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var followers int
	err = sqlx.GetContext(ctx, q, &followers, `SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'`)
	return []dialect.Finding{foundReplicas(sources, followers)}, err
}

func foundReplicas(sources, followers int) dialect.Finding {
	const check = "replicas"
	if sources > 0 {
		return dialect.Warn(check, "name the primary in the database URL, and set read_only = ON on replicas",
			"this server is a replica of another and takes writes: relays on both would send the same messages")
	}
	words := "no replica follows this server, as far as this user sees"
	if followers > 0 {
		words = strconv.Itoa(followers) + " replicas follow this server; a failover to one that is behind can lose a commit whose message was sent already"
	}
	return dialect.Fine(check, "%s", words)
}
