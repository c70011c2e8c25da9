package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

// blocksOf gives the blocks of a language in docs/receiving.md.
func blocksOf(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/receiving.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, found := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

// TestDocumentedTables runs the SQL of docs/receiving.md on each engine: a key goes in once, and does not go for its age.
func TestDocumentedTables(t *testing.T) {
	t.Parallel()
	blocks := blocksOf(t, "sql")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of SQL", len(blocks))
	}
	for variable, block := range map[string]string{
		"OUTBOXD_TEST_POSTGRES_URL": blocks[0], "OUTBOXD_TEST_MYSQL_URL": blocks[1], "OUTBOXD_TEST_MARIADB_URL": blocks[1],
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			conn := emptySchema(t, variable)
			exec := func(statement string) error {
				_, err := conn.ExecContext(t.Context(), statement)
				return err
			}
			for statement := range strings.SplitSeq(block, "\n\n") {
				if err := exec(statement); err != nil {
					t.Fatalf("%s: %s", statement, err)
				}
			}
			_, insert, _ := strings.Cut(block, "-- step 3")
			_, insert, _ = strings.Cut(insert, "\n")
			insert, _, _ = strings.Cut(insert, "\n\n")
			if again := fmt.Sprint(exec(insert)); again != "<nil>" && !strings.HasPrefix(again, "Error 1062 ") {
				t.Errorf("%s, again: %s", insert, again)
			}
			var n int
			if err := conn.QueryRowContext(t.Context(), "SELECT count(*) FROM processed_message").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d keys, %v", n, err)
			}
		})
	}
}

// emptySchema is a connection into a schema of the test's own, on the server that a variable names.
func emptySchema(t *testing.T, variable string) *sql.Conn {
	t.Helper()
	schema := fmt.Sprintf("cli_%08x", rand.Uint32())
	into, drop := "USE "+schema, "DROP DATABASE "+schema
	if variable == "OUTBOXD_TEST_POSTGRES_URL" {
		into, drop = "SET search_path TO "+schema, "DROP SCHEMA "+schema+" CASCADE"
	}
	db, err := openDemo(serverURL(t, variable), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil { // which makes the schema
		t.Fatal(err)
	}
	conn, err := db.Pool().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = conn.ExecContext(context.Background(), drop) // the test's own has ended
		_ = conn.Close()
	})
	if _, err := conn.ExecContext(t.Context(), into); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestDocumentedReceive holds that the lines of docs/receiving.md are commands that there are, with flags that they have.
func TestDocumentedReceive(t *testing.T) {
	t.Parallel()
	lines := 0
	for line := range strings.SplitSeq(strings.Join(blocksOf(t, "sh"), "\n"), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		cmd, rest, err := (&program{env: environment()}).root().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.Name() != "receive" {
			t.Errorf("%s: %s, %v", line, cmd.Name(), err)
		}
		lines++
	}
	if lines < 5 {
		t.Errorf("%d lines", lines)
	}
}
