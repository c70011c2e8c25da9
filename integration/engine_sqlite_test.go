package integration

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/sqlite"
	"github.com/outboxd/outboxd/outbox"
)

func sqliteEngine() engine {
	const now = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"
	return engine{
		name: "sqlite", helper: outbox.SQLite, driver: "sqlite", empty: emptySQLite,
		open:  func(o dialect.Options) (opened, error) { return sqlite.Open(o) },
		lease: 6 * time.Second, // whoever writes holds up all others, the longer the busier the machine
		words: strings.NewReplacer(
			"{now}", now, "{hour}", "3600000000", "{second}", "1000000",
			"{long ago}", "1000000000000000", "{not due}", "NULL", "{unknown}", "(unknown_since IS NOT NULL)",
			"{next year}", "("+now+" + 31536000000000)", "{last year}", "("+now+" - 31536000000000)",
			"{last day}", "253402128000000000",
			"{on outbox}", "",
			"{moment}", "INTEGER NOT NULL DEFAULT 0",
			"{payload}", "coalesce(payload, '')",
		),
		odd: sqliteOddities(),
	}
}

func emptySQLite(t *testing.T, e engine) *database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outbox.db")
	// A transaction of the tests writes, so it waits for the writer before it at its beginning.
	return openDatabase(t, e, path, "sqlite:"+path, "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(60000)")
}
