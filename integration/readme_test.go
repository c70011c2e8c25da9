package integration

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the README shows, and what a test puts in its place.
const (
	readmeDatabase = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
	readmeBroker   = "127.0.0.1:9092"
	readmeTopic    = "OUTBOXD_KAFKA_TOPIC="
	readmeReceiver = "127.0.0.1:8088"
)

// TestReadme does what the README says, in its order and in a fresh copy of the checkout: shell blocks as they are, SQL
// blocks by psql, Go blocks in a small program; a block whose first line names a file becomes that file.
func TestReadme(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("psql is not installed, and the README uses it")
	}
	db := emptyDatabase(t)
	topic := newTopic(t, 3)
	replace := strings.NewReplacer(readmeDatabase, db.url, readmeBroker, brokers(t)[0], readmeTopic+"orders", readmeTopic+topic, readmeReceiver, freeAddress(t))
	dir := copyCheckout(t)
	writeScript(t, dir, replace)

	stdout := runScript(t, dir)
	if paid, rolledBack := strings.Count(stdout, `"aggregateid":"42"`), strings.Count(stdout, `"aggregateid":"43"`); paid != 1 || rolledBack != 0 {
		t.Errorf("the relay printed order 42 %d times and order 43 %d times, want 1 and 0:\n%s", paid, rolledBack, stdout)
	}
	if n := db.count(t, "SELECT count(*) FROM outbox WHERE aggregateid = '43' OR state <> 'done'"); n != 0 {
		t.Errorf("%d messages of order 43, which was rolled back, or not done", n)
	}
	checkEvidence(t, db, dir, stdout)
	records := readTopic(t, topic)
	for _, r := range records {
		id, _ := header(r, "id")
		if n := db.count(t, "SELECT count(*) FROM outbox WHERE id = '"+id+"' AND result = '"+place(r)+"'"); n != 1 {
			t.Errorf("the topic holds %q at %s, and the table does not say so", id, place(r))
		}
	}
	if n := db.count(t, "SELECT count(*) FROM outbox WHERE result LIKE '%@%'"); n == 0 || n != len(records) {
		t.Errorf("%d messages in the topic, and %d that say so", len(records), n)
	}
}

// checkEvidence holds that the drill found the receiver that charges twice, that the next configuration is refused, and that
// the page for a review has both the drill and what it rests on.
func checkEvidence(t *testing.T, db *database, dir, stdout string) {
	t.Helper()
	if n := db.count(t, `SELECT count(*) FROM outbox_operation WHERE op = 'drill' AND filter LIKE '%"sent":1,%"differed":1,%'`); n != 1 {
		t.Errorf("%d drills that found one answer to differ, want 1", n)
	}
	if !regexp.MustCompile(`(?m)^NO +charge_order +charge_order +1 +done `).MatchString(stdout) {
		t.Errorf("compat does not refuse version 1 of charge_order:\n%s", stdout)
	}
	page, err := os.ReadFile(filepath.Join(dir, "evidence.md"))
	if err != nil || !strings.Contains(string(page), "differ 1 · unanswered 0. *(outbox_operation") {
		t.Errorf("the page: %v\n%s", err, page)
	}
}

// copyCheckout copies the checkout without its history and what was built in it.
func copyCheckout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, strings.TrimPrefix(path, ".."))
		switch name := entry.Name(); {
		case entry.IsDir() && (name == ".git" || name == "bin" || name == ".cache"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeScript makes one shell script of all blocks, so that what one block exports holds in the next.
func writeScript(t *testing.T, dir string, replace *strings.Replacer) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca, err := os.ReadFile(newAuthority(t).file)
	if err != nil {
		t.Fatal(err)
	}
	write("client-secret", "what the reader's provider gave") // these two are the reader's own
	write("provider-ca.pem", string(ca))
	write("psqlrc", "\\set ON_ERROR_STOP on\n")
	var script strings.Builder
	script.WriteString("set -eux\n")
	for _, b := range blocks(t, string(readme)) {
		text := replace.Replace(b.text)
		switch b.language {
		case "sh":
			script.WriteString(text)
		case "sql":
			name := fmt.Sprintf("line%d.sql", b.line)
			write(name, text)
			fmt.Fprintf(&script, "psql \"$OUTBOXD_DATABASE_URL\" --file %s >&2\n", name)
		case "go":
			write(b.file(t), goProgram+text)
			fmt.Fprintf(&script, "go vet %s\ngo run %[1]s >&2\n", b.file(t))
		case "yaml":
			write(b.file(t), text)
		default:
			t.Errorf("README.md:%d: a block in language %q, which this test cannot run", b.line, b.language)
		}
	}
	write("readme.sh", script.String())
}

// runScript runs the script in dir, and returns what it printed.
func runScript(t *testing.T, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "readme.sh")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "OUTBOXD_") && !strings.HasPrefix(setting, "DATABASE_URL=") {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	cmd.Env = append(cmd.Env, "PSQLRC="+filepath.Join(dir, "psqlrc"), "OUTBOXD_LISTEN=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the README's commands: %v\n%s%s", err, &stdout, &stderr)
	}
	return stdout.String()
}

// freeAddress is one that nobody listens on, and that nobody is given by the system meanwhile: its port lies below those
// that a listener on port 0 or a connection gets, so that a program may take a while until it listens there.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if _, given := givenAddresses.LoadOrStore(address, true); !given {
			defer listener.Close()
			return address
		}
		_ = listener.Close()
	}
	t.Fatal("no port is free between 10000 and 20000")
	return ""
}

// givenAddresses are those that a test has, though nobody listens there yet.
var givenAddresses sync.Map

// block is a fenced block of a Markdown file.
type block struct {
	language, text string
	line           int
}

// file is the name in the comment that is the block's first line.
func (b block) file(t *testing.T) string {
	t.Helper()
	first, _, _ := strings.Cut(b.text, "\n")
	name := strings.TrimLeft(first, "#/ ")
	if name == first || strings.ContainsAny(name, "/ ") {
		t.Fatalf("README.md:%d: the first line should be a comment with a file's name", b.line)
	}
	return name
}

func blocks(t *testing.T, markdown string) []block {
	t.Helper()
	var found []block
	open := false
	for i, line := range strings.SplitAfter(markdown, "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !open:
			found = append(found, block{language: language, line: i + 1})
			open = true
		case fence:
			open = false
		case open:
			found[len(found)-1].text += line
		}
	}
	if open || len(found) == 0 {
		t.Fatal("README.md: no block, or one that does not end")
	}
	return found
}

// goProgram surrounds the README's function pay.
const goProgram = `package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"strconv"

	_ "github.com/lib/pq"

	"github.com/outboxd/outboxd/outbox"
)

func main() {
	db, err := sql.Open("postgres", os.Getenv("OUTBOXD_DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	id, err := pay(context.Background(), db, 42)
	if err != nil {
		log.Fatal(err)
	}
	r, err := outbox.Table{Dialect: outbox.Postgres}.Result(context.Background(), db, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id, r.State)
}

`
