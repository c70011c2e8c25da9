package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
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
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of SQL", len(blocks))
	}
	for variable, block := range map[string]string{
		"OUTBOXD_TEST_POSTGRES_URL": blocks[0], "OUTBOXD_TEST_MYSQL_URL": blocks[1], "OUTBOXD_TEST_MARIADB_URL": blocks[1], "SQLite": blocks[2],
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

// emptySchema is a connection into a schema of the test's own, on the server that a variable names or in a file of SQLite.
func emptySchema(t *testing.T, variable string) *sql.Conn {
	t.Helper()
	url, schema, into, drop := "sqlite:"+filepath.Join(t.TempDir(), "billing.db"), "", "SELECT 1", "SELECT 1"
	if variable != "SQLite" {
		url, schema = serverURL(t, variable), fmt.Sprintf("cli_%08x", rand.Uint32())
		into, drop = "USE "+schema, "DROP DATABASE "+schema
		if variable == "OUTBOXD_TEST_POSTGRES_URL" {
			into, drop = "SET search_path TO "+schema, "DROP SCHEMA "+schema+" CASCADE"
		}
	}
	db, err := openDemo(url, schema)
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

const exampleSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

// startExample runs the receiver of docs/receiving.md, and gives its URL and its folder.
func startExample(t *testing.T) (url, dir string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed, and the example of docs/receiving.md is written in it")
	}
	dir = t.TempDir()
	writeTo(t, filepath.Join(dir, "receiver.py"), []byte(blocksOf(t, "python")[0]))
	cmd := exec.Command(python, "receiver.py", "0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEBHOOK_SECRET="+exampleSecret)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	port, found := strings.CutPrefix(strings.TrimSpace(line), "listening on port ")
	if !found {
		t.Fatalf("it says %q", line)
	}
	return "http://127.0.0.1:" + port + "/charges", dir
}

// chargesOf counts what the example did.
func chargesOf(t *testing.T, dir string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "billing.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM charge").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDocumentedReceiver holds the example to what the page says of receivers.
func TestDocumentedReceiver(t *testing.T) {
	t.Parallel()
	url, dir := startExample(t)
	signer, err := standardwebhooks.NewWebhook(exampleSecret)
	if err != nil {
		t.Fatal(err)
	}
	post := func(key, body string, age time.Duration) int {
		at := time.Now().Add(-age)
		signature, err := signer.Sign(key, at, []byte(body))
		if err != nil {
			t.Error(err)
		}
		return (&receiving{t: t, url: url}).post(key, body, "webhook-id", key, "webhook-timestamp", strconv.FormatInt(at.Unix(), 10),
			"webhook-signature", signature)
	}
	for _, step := range []struct {
		key, body string
		age       time.Duration
		status    int
		charges   int
	}{
		{"a", `{"order":1}`, 0, http.StatusOK, 1},
		{"a", `{"order":1}`, 0, http.StatusOK, 1},
		{"a", `{"order":2}`, 0, http.StatusUnprocessableEntity, 1},
		{"b", `{"order":"x"}`, 0, http.StatusUnprocessableEntity, 1},
		{"b", `{"order":2}`, 0, http.StatusOK, 2},
		{"c", `{"order":3}`, 6 * time.Minute, http.StatusUnauthorized, 2},
	} {
		if status := post(step.key, step.body, step.age); status != step.status || chargesOf(t, dir) != step.charges {
			t.Errorf("%+v: %d, %d charges", step, status, chargesOf(t, dir))
		}
	}
	if status := (&receiving{t: t, url: url}).post("c", `{"order":3}`); status != http.StatusUnauthorized {
		t.Errorf("unsigned: %d", status)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if status := post("d", `{"order":4}`, 0); status != http.StatusOK && status != http.StatusConflict {
				t.Errorf("at once: %d", status)
			}
		})
	}
	all.Wait()
	if n := chargesOf(t, dir); n != 3 {
		t.Errorf("%d charges, want 3", n)
	}
}

// TestDocumentedDestination lets a relay with the page's configuration execute commands at the page's receiver.
func TestDocumentedDestination(t *testing.T) {
	t.Parallel()
	url, dir := startExample(t)
	file := write(t, t.TempDir(), "outboxd.yaml", strings.Replace(blocksOf(t, "yaml")[0], "http://127.0.0.1:8080/charges", url, 1))
	e := newExecuted(t)
	plain := e.env
	e.env = func(name string) (string, bool) {
		if name == "WEBHOOK_SECRET" {
			return exampleSecret, true
		}
		return plain(name)
	}
	if out := e.command("dest", "test", "billing", "-c", file); strings.Contains(out, "failed") {
		t.Error(out)
	}
	id := e.command("enqueue", "--aggregatetype", "charges", "--type", "charge_order", "--data", `{"order":7}`)
	e.command("run", "--once", "-c", file)
	if out := e.command("get", id, "-o", "json"); !strings.Contains(out, `"result": "charge-1"`) || chargesOf(t, dir) != 1 {
		t.Errorf("%d charges: %s", chargesOf(t, dir), out)
	}
}
