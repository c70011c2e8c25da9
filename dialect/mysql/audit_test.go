package mysql

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestAudits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		dialecttest.TestAudits(t, func(t *testing.T) dialecttest.Backend { return seen{s.newDatabase(t), t} })
	})
}

// reader connects as outboxd does, as an account that has the rights of outbox_reader.
func (d testDatabase) reader(t *testing.T) *DB {
	t.Helper()
	roles, err := Script("roles.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, "CREATE USER "+d.schema)
	t.Cleanup(func() { d.exec(t, "DROP USER "+d.schema) })
	const role = "TO outbox_reader, outbox_operator, outbox_corrector"
	for _, statement := range split(roles) {
		if strings.Contains(statement, role) {
			d.exec(t, strings.ReplaceAll(statement, role, "TO "+d.schema))
		}
	}
	d.url = withUser(t, d.url, d.schema)
	return d.connect(t, dialect.Options{})
}

// People run the audits in sessions of whatever settings their client has.
func TestAuditsInAnySession(t *testing.T) {
	t.Parallel()
	sessions := []string{
		"SET NAMES utf8mb4", "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET NAMES latin1",
		"SET sql_mode = ''", "SET sql_mode = 'ANSI,ONLY_FULL_GROUP_BY'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES,TRADITIONAL'",
		"SET time_zone = '+02:00'", "SET autocommit = 0",
	}
	onBoth(t, func(t *testing.T, server testServer) {
		d := server.newDatabase(t)
		dialecttest.FillForAudits(t, seen{d, t})
		all, err := d.connect(t, dialect.Options{}).Audits()
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range sessions {
			conn, err := d.db.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			for _, statement := range []string{session, "SET @outbox_id = '" + dialecttest.ID("8") + "'"} {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range all {
				answer, err := dialect.Ask(t.Context(), conn, a.SQL)
				if err != nil || len(answer.Rows) == 0 {
					t.Errorf("after %s, %s has %d rows: %v", session, a.Name, len(answer.Rows), err)
				}
				if a.Name == dialect.AuditOfOne && len(answer.Rows) != 1 {
					t.Errorf("after %s, 8 has %d attempts", session, len(answer.Rows))
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The audits run as they are in the client, where the message is a variable.
func TestAuditsRunInClient(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server testServer) {
		client := dialecttest.Client(t, "mariadb")
		d := server.newDatabase(t)
		dialecttest.FillForAudits(t, seen{d, t})
		all, err := d.connect(t, dialect.Options{}).Audits()
		if err != nil {
			t.Fatal(err)
		}
		config, err := parseURL(server.url, false)
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(config.Addr, ":")
		for _, a := range all {
			text := "SET @outbox_id = '" + dialecttest.ID("8") + "';\n" + a.SQL
			cmd := exec.CommandContext(t.Context(), client, "--no-defaults", "--user=root", "--host="+host, "--port="+port, d.schema)
			cmd.Stdin = strings.NewReader(text)
			out, err := cmd.CombinedOutput()
			if lines := strings.Count(string(out), "\n"); err != nil || lines < 2 || a.Name == dialect.AuditOfOne && lines != 2 {
				t.Errorf("%s: %v: %s", a.Name, err, out)
			}
		}
	})
}
