// Package sqlite is the engine of SQLite, for the demo, tests and small applications on one host: one process at a time
// writes to the file, and one that is stopped while it writes stops all others.
package sqlite
