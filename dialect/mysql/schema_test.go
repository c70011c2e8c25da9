package mysql

import (
	"errors"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	cases := []struct {
		version, name string
		ok, old       bool
	}{
		{"8.0.16", "MySQL 8.0.16", true, true},
		{"8.0.17", "MySQL 8.0.17", true, false},
		{"8.0.36-28", "MySQL 8.0.36", true, false},
		{"9.7.4-2", "MySQL 9.7.4", true, false},
		{"5.7.44-log", "MySQL 5.7.44", true, true},
		{"8.0.11-TiDB-v7.5.0", "MySQL 8.0.11", true, true},
		{"10.5.29-MariaDB", "MariaDB 10.5.29", true, true},
		{"10.6.0-MariaDB-1:10.6.0+maria~ubu2204", "MariaDB 10.6.0", true, false},
		{"10.11.19-MariaDB-0+deb12u1", "MariaDB 10.11.19", true, false},
		{"12.1.2-MariaDB", "MariaDB 12.1.2", true, false},
		{"something", "MySQL 0.0.0", false, true},
	}
	for _, c := range cases {
		s, ok := parseServer(c.version)
		if s.String() != c.name || ok != c.ok || s.old() != c.old {
			t.Errorf("%s: %s, understood %v, old %v", c.version, s, ok, s.old())
		}
	}
}

func TestCheckBinlog(t *testing.T) {
	t.Parallel()
	cases := []struct {
		log, format string
		refused     bool
	}{
		{"ON", "ROW", false}, {"ON", "MIXED", false}, {"ON", "STATEMENT", true}, {"OFF", "STATEMENT", false}, {"ON", "", false},
	}
	for _, c := range cases {
		err := checkBinlog(map[string]string{"log_bin": c.log, "binlog_format": c.format})
		if (err != nil) != c.refused || err != nil && (!errors.Is(err, dialect.ErrServer) || !strings.Contains(err.Error(), "SET GLOBAL binlog_format")) {
			t.Errorf("log_bin %s, binlog_format %s: %v, want it refused: %v", c.log, c.format, err, c.refused)
		}
	}
}

// A server that is alone has nothing to be hinted at.
func TestHints(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		hints, err := s.newSchema(t).connect(t, dialect.Options{}).Hints(t.Context())
		if err != nil || len(hints) != 0 {
			t.Errorf("%q, %v", hints, err)
		}
	})
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"shop": "`shop`", "My`Shop": "`My``Shop`", "täst": "`täst`", strings.Repeat("ä", 64): "`" + strings.Repeat("ä", 64) + "`",
		"": "", strings.Repeat("a", 65): "", "a ": "", "a\x00": "",
	} {
		if got, err := quote(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is quoted as %s, %v", name, got, err)
		}
	}
	for text, want := range map[string]string{
		"FROM /*schema.*/outbox o JOIN /*schema.*/outbox_lease": "FROM `s`.outbox o JOIN `s`.outbox_lease",
		"FROM /*schema*/outbox":                                 "",
	} {
		if got, err := render(text, "s"); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is rendered as %q, %v", text, got, err)
		}
	}
}
