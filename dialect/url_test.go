package dialect

import (
	"strings"
	"testing"
)

func TestEngineOf(t *testing.T) {
	t.Parallel()
	cases := []struct{ url, engine, cleaned, says string }{
		{"postgres://u:p@h:5432/d?sslmode=disable", Postgres, "postgres://u:p@h:5432/d?sslmode=disable", ""},
		{"postgresql://u:p@h/d", Postgres, "postgres://u:p@h/d", ""},
		{"postgresql+psycopg://u:p@h/d", Postgres, "postgres://u:p@h/d", ""},
		{"PostgreSQL+asyncpg://u:p@h/d", Postgres, "postgres://u:p@h/d", ""},
		{"mysql://u:p@h:3306/d?charset=utf8mb4", MySQL, "mysql://u:p@h:3306/d?charset=utf8mb4", ""},
		{"mariadb://u:p@h/d", MySQL, "mysql://u:p@h/d", ""},
		{"mysql2://u:p@h/d", MySQL, "mysql://u:p@h/d", ""}, // as Rails writes it
		{"mysql+pymysql://u:p@h/d", MySQL, "mysql://u:p@h/d", ""},
		{"sqlite:/var/lib/shop.db", SQLite, "sqlite:/var/lib/shop.db", ""},
		{"sqlite:///shop.db", SQLite, "sqlite:///shop.db", ""},
		{"sqlite3:shop.db", SQLite, "sqlite:shop.db", ""},
		{"file:shop.db", SQLite, "sqlite:shop.db", ""},
		{"jdbc:postgresql://h/d?user=u&password=QzQx", "", "", "JDBC: write postgres://"},
		{"jdbc:mysql://u:QzQx@h/d", "", "", "JDBC: write mysql://"},
		{"jdbc:mariadb://h/d?password=QzQx", "", "", "JDBC: write mysql://"},
		{"jdbc:sqlite:QzQx.db", "", "", "JDBC: write sqlite:"},
		{"jdbc:oracle:thin:u/QzQx@h", "", "", "is not understood"},
		{"sqlserver://u:QzQx@h", "", "", "begins with sqlserver"},
		{"mongodb://u:QzQx@h", "", "", "begins with mongodb"},
		{"u:QzQx@tcp(h:3306)/d", "", "", "mysql://user:password@host:3306/database"},
		{"host=h password=QzQx", "", "", "is not understood"},
		{"QzQx", "", "", "is not understood"},
		{"", "", "", "is not understood"},
	}
	for _, c := range cases {
		engine, cleaned, err := EngineOf(c.url)
		if engine != c.engine || cleaned != c.cleaned || (err == nil) != (c.says == "") {
			t.Errorf("%s: %q, %q, %v", c.url, engine, cleaned, err)
			continue
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "QzQx")) {
			t.Errorf("%s: %v, want it to say %s", c.url, err, c.says)
		}
	}
}
