// Package postgres is the engine of PostgreSQL 13 and later: its connections, its migrations, its Store, and its queries for
// people and for operations.
package postgres
