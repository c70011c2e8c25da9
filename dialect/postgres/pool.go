package postgres

import "database/sql"

// Pool gives the connections themselves, for statements beside those of outboxd: the demo's shop and receiver.
func (d *DB) Pool() *sql.DB { return d.work.DB }
