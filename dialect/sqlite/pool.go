package sqlite

import "database/sql"

// Pool gives the connection that writes, for statements beside those of outboxd: the demo's shop and receiver.
func (d *DB) Pool() *sql.DB { return d.writer.DB }
