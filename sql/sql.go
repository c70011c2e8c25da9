// Package outboxsql holds the SQL that people may read and run: migrations, roles and audit queries, a folder for each
// database.
//
// Every file runs as it is in the database's own shell: on the first schema of the search_path, in the current database of
// MySQL, in the file of SQLite. The comment /*schema.*/ before a name is the place where outboxd puts another schema.
package outboxsql

import "embed"

// Files has, in a folder for each database, NNN_name.sql (migrations, in order of their number), drop.sql, roles.sql where
// the database knows roles, and audit/*.sql.
//
//go:embed postgres mysql sqlite
var Files embed.FS
