package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Engines, each a package below this one.
const (
	Postgres = "postgres"
	MySQL    = "mysql" // and MariaDB
	SQLite   = "sqlite"
)

// errURL is all that is said of a URL that begins as none that we know: its beginning may be that of a password.
var errURL = errors.New("the database URL is not understood: write postgres://user:password@host:5432/database, " +
	"mysql://user:password@host:3306/database or sqlite:/path/to/file")

// EngineOf tells by its scheme which engine a URL is for, and gives the URL with the scheme that the engine's package
// knows. People bring URLs from elsewhere: the driver that SQLAlchemy wants to be named (postgresql+psycopg://) is left
// out; what is no URL at all (a DSN, jdbc:, key=value pairs) is answered with the form to use. No error contains a part of
// the URL but a scheme that is known.
func EngineOf(url string) (engine, cleaned string, err error) {
	scheme, rest, found := strings.Cut(url, ":")
	scheme = strings.ToLower(scheme)
	base, _, _ := strings.Cut(scheme, "+")
	switch {
	case scheme == "jdbc":
		return "", "", jdbc(rest)
	case !found:
		return "", "", errURL
	case base == "postgres" || base == "postgresql":
		return Postgres, "postgres:" + rest, nil
	case base == "mysql" || base == "mariadb" || base == "mysql2":
		return MySQL, "mysql:" + rest, nil
	case base == "sqlite" || base == "sqlite3" || base == "file":
		return SQLite, "sqlite:" + rest, nil
	case slices.Contains([]string{"sqlserver", "mssql", "oracle", "mongodb", "redis", "db2"}, base):
		return "", "", fmt.Errorf("the database URL begins with %s: outboxd works on PostgreSQL, MySQL, MariaDB and SQLite", base)
	}
	return "", "", errURL
}

// jdbc answers a URL of Java with ours.
func jdbc(rest string) error {
	kind, _, _ := strings.Cut(rest, ":")
	switch strings.ToLower(kind) {
	case "postgresql":
		return errors.New("the database URL is one of JDBC: write postgres://user:password@host:5432/database, with user and password before the host")
	case "mysql", "mariadb":
		return errors.New("the database URL is one of JDBC: write mysql://user:password@host:3306/database, with user and password before the host")
	case "sqlite":
		return errors.New("the database URL is one of JDBC: write sqlite:/path/to/file")
	}
	return errURL
}
