// Package outboxsql holds the SQL that people may read and run: migrations, roles and audit queries, a folder for each
// database.
//
// Every file runs as it is in the database's own shell, on the first schema of the search_path. The comment /*schema.*/
// before a name is the place where outboxd puts another schema.
package outboxsql

import "embed"

// Files has postgres/NNN_name.sql (migrations, in order of their number), postgres/roles.sql, postgres/drop.sql and
// postgres/audit/*.sql.
//
//go:embed postgres
var Files embed.FS
