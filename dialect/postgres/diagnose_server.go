package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// seesAll says what to grant to a role that sees its own sessions only.
const seesAll = "GRANT pg_read_all_stats TO this role"

// sqlHolders are the sessions in this database whose snapshot or transaction id keeps vacuum from removing newer dead rows. $1
// microseconds.
const sqlHolders = `
SELECT pid, coalesce(usename, '') AS usename, coalesce(application_name, '') AS application, coalesce(host(client_addr), '') AS address,
  coalesce(state, '') AS state, (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint AS held
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
  AND xact_start < clock_timestamp() - $1::bigint * interval '1 microsecond'
ORDER BY xact_start LIMIT 20`

const sqlPrepared = `
SELECT gid, owner, (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint AS held
FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - $1::bigint * interval '1 microsecond'
ORDER BY prepared LIMIT 20`

// sqlUnseen counts the sessions of this database whose transactions this role may not see.
const sqlUnseen = `
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND NOT pg_has_role(usesysid, 'USAGE') AND NOT pg_has_role('pg_read_all_stats', 'USAGE')`

func lookAtHolds(ctx context.Context, q sqlx.ExtContext, older time.Duration) ([]dialect.Finding, error) {
	var sessions []struct {
		Pid                                  int
		Usename, Application, Address, State string
		Held                                 dialect.Age
	}
	if err := sqlx.SelectContext(ctx, q, &sessions, sqlHolders, older.Microseconds()); err != nil {
		return nil, err
	}
	var prepared []struct {
		Gid, Owner string
		Held       dialect.Age
	}
	if err := sqlx.SelectContext(ctx, q, &prepared, sqlPrepared, older.Microseconds()); err != nil {
		return nil, err
	}
	var holds []dialect.Hold
	for _, s := range sessions {
		holds = append(holds, dialect.Hold{
			Name: fmt.Sprintf("the transaction of pid %d", s.Pid), For: s.Held,
			More: told("user", s.Usename, "application", s.Application, "at", s.Address, "", s.State),
			End:  fmt.Sprintf("commit sooner in that application, or end the session: SELECT pg_terminate_backend(%d)", s.Pid),
		})
	}
	for _, p := range prepared {
		holds = append(holds, dialect.Hold{
			Name: "the prepared transaction " + strconv.Quote(p.Gid), More: told("owner", p.Owner), For: p.Held,
			End: "let its coordinator finish it, or COMMIT PREPARED or ROLLBACK PREPARED it by that name",
		})
	}
	var hidden int
	if err := sqlx.GetContext(ctx, q, &hidden, sqlUnseen); err != nil {
		return nil, err
	}
	if hidden > 0 {
		unseen := dialect.Warn("transactions", seesAll, "those of %d sessions of other roles cannot be seen", hidden)
		if len(holds) == 0 {
			return []dialect.Finding{unseen}, nil
		}
		return append(dialect.FoundHolds(holds, older), unseen), nil
	}
	return dialect.FoundHolds(holds, older), nil
}

// told puts pairs of a word and a value after each other, without those whose value is empty.
func told(pairs ...string) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, strings.TrimSpace(pairs[i]+" "+pairs[i+1]))
		}
	}
	return strings.Join(parts, ", ")
}

// slot is a replication slot that keeps vacuum from removing what a standby may still read.
type slot struct {
	Name   string
	Active bool
	Behind int64 // transactions since its oldest one began
}

func lookAtSlots(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var slots []slot
	err := sqlx.SelectContext(ctx, q, &slots, `SELECT slot_name AS name, active, age(xmin)::bigint AS behind
		FROM pg_replication_slots WHERE xmin IS NOT NULL ORDER BY slot_name`)
	return foundSlots(slots), err
}

// farBehind is how many transactions a standby may lag that is at work. A busy outbox makes thousands a second.
const farBehind = 1_000_000

func foundSlots(slots []slot) []dialect.Finding {
	const check = "replication slots"
	var findings []dialect.Finding
	for _, s := range slots {
		switch {
		case !s.Active:
			findings = append(findings, dialect.Warn(check, "start its standby, or SELECT pg_drop_replication_slot with that name",
				"slot %q has no reader, and holds back vacuum for the last %d transactions", s.Name, s.Behind))
		case s.Behind > farBehind:
			findings = append(findings, dialect.Warn(check, "end the long query on its standby, or set hot_standby_feedback = off there",
				"slot %q holds back vacuum for the last %d transactions", s.Name, s.Behind))
		}
	}
	if findings == nil {
		return []dialect.Finding{dialect.Fine(check, "none holds back vacuum")}
	}
	return findings
}

// lookAtReplicas tells of standbys. A server that is one itself refuses the connection.
func lookAtReplicas(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	const check = "replicas"
	var all, synchronous int
	var seen bool
	var lag dialect.Age
	var commit string
	row := q.QueryRowxContext(ctx, `SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
		pg_has_role('pg_read_all_stats', 'USAGE'), coalesce((extract(epoch FROM max(replay_lag)) * 1000000)::bigint, 0),
		current_setting('synchronous_commit') FROM pg_stat_replication`)
	if err := row.Scan(&all, &synchronous, &seen, &lag, &commit); err != nil {
		return nil, err
	}
	switch {
	case commit == "off":
		return []dialect.Finding{dialect.Warn(check, "take synchronous_commit = off out of the settings of the server, the database or the role",
			"synchronous_commit is off: a crash of the server can undo a commit whose message was sent already")}, nil
	case all == 0:
		return []dialect.Finding{dialect.Fine(check, "this server is the primary, and has no standby that is connected")}, nil
	case !seen:
		return []dialect.Finding{dialect.Warn(check, seesAll, "%d standbys are connected; how far they are behind cannot be seen", all)}, nil
	}
	words := fmt.Sprintf("this server is the primary of %d standbys, %d of them synchronous, at most %s behind", all, synchronous, lag)
	if synchronous == 0 {
		words += "; a failover can lose a commit whose message was sent already"
	}
	return []dialect.Finding{dialect.Fine(check, "%s", words)}, nil
}

// vacuumed is how the server cleans a table.
type vacuumed struct {
	Global  string // autovacuum
	Counts  string // track_counts
	Options []string
	Dead    int64
	Last    *dialect.Age // since vacuum was last through
}

func (d *DB) lookAtVacuum(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var v vacuumed
	row := q.QueryRowxContext(ctx, `SELECT current_setting('autovacuum'), current_setting('track_counts'), coalesce(c.reloptions, '{}'),
		coalesce(s.n_dead_tup, 0), (extract(epoch FROM clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum)) * 1000000)::bigint
		FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE c.oid = to_regclass($1)`, d.name("outbox"))
	if err := row.Scan(&v.Global, &v.Counts, pq.Array(&v.Options), &v.Dead, &v.Last); err != nil {
		return nil, err
	}
	return foundVacuum(v), nil
}

// foundVacuum judges what keeps done a HOT update, and the index of the claim short.
func foundVacuum(v vacuumed) []dialect.Finding {
	const check = "vacuum"
	options := map[string]string{}
	for _, o := range v.Options {
		name, value, _ := strings.Cut(o, "=")
		options[name] = value
	}
	var findings []dialect.Finding
	if v.Global == "off" || v.Counts == "off" {
		findings = append(findings, dialect.Warn(check, "set autovacuum = on and track_counts = on on the server", "autovacuum is off on this server, so claims walk past more and more dead rows"))
	}
	if on, err := strconv.ParseBool(options["autovacuum_enabled"]); err == nil && !on || options["autovacuum_enabled"] == "off" {
		findings = append(findings, dialect.Warn(check, "run ALTER TABLE outbox RESET (autovacuum_enabled)", "autovacuum is off for table outbox, so claims walk past more and more dead rows"))
	}
	if scale, err := strconv.ParseFloat(options["autovacuum_vacuum_scale_factor"], 64); err != nil || scale > 0.1 {
		findings = append(findings, dialect.Warn(check, "run ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.01)",
			"autovacuum waits until a part of table outbox is dead that grows with it"))
	}
	if fill, err := strconv.Atoi(options["fillfactor"]); err != nil || fill > 50 {
		findings = append(findings, dialect.Warn(check, "run ALTER TABLE outbox SET (fillfactor = 45), and VACUUM FULL when nobody writes",
			"the pages of table outbox are filled beyond the half, so the second version of a row finds no room beside the first, and done writes into every index"))
	}
	if findings != nil {
		return findings
	}
	last := "has not been through yet"
	if v.Last != nil {
		last = "was last through " + v.Last.String() + " ago"
	}
	return []dialect.Finding{dialect.Fine(check, "autovacuum %s; %d dead rows are counted", last, v.Dead)}
}
