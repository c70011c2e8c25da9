package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// demonstration is a demo as a process of its own, with a temporary folder of its own.
type demonstration struct {
	cmd            *exec.Cmd
	folder         string
	stdout, stderr safeBuffer
}

func newDemo(t *testing.T, args ...string) *demonstration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	d := &demonstration{folder: t.TempDir()}
	d.cmd = exec.CommandContext(ctx, os.Args[0], append([]string{"demo"}, args...)...)
	d.cmd.Env = append(os.Environ(), asMain+"=1", "TMPDIR="+d.folder, "DATABASE_URL=postgres://nowhere/d", "OUTBOXD_KAFKA_BROKERS=nowhere:1")
	d.cmd.Stdout, d.cmd.Stderr = &d.stdout, &d.stderr
	return d
}

// play plays it to its end, and gives its exit code.
func (d *demonstration) play() int {
	_ = d.cmd.Run() // its code is what counts
	return d.cmd.ProcessState.ExitCode()
}

// left are the names in its temporary folder.
func (d *demonstration) left(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// goodBalance is the last line. On a machine that stands still for seconds a lease may end, and a message go once more.
var goodBalance = regexp.MustCompile(`committed 8 · rolled back 2 · sends 1\d · effects 8 · duplicates dropped [2-9] · lost 0\n$`)

// TestDemo plays the demo on a file, and where there are servers on those too.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"", "OUTBOXD_TEST_POSTGRES_URL", "OUTBOXD_TEST_MYSQL_URL", "OUTBOXD_TEST_MARIADB_URL"} {
		t.Run(orElse(variable, "SQLite"), func(t *testing.T) {
			t.Parallel()
			args := []string{"--auto"}
			if variable != "" {
				args = append(args, "--db", serverURL(t, variable))
			}
			d := newDemo(t, args...)
			if code := d.play(); code != exitOK || !goodBalance.MatchString(d.stdout.String()) {
				t.Errorf("exit %d: %s\n%s", code, d.stderr.String(), d.stdout.String())
			}
			if variable != "" && schemaIsThere(t, serverURL(t, variable), d.stdout.String()) {
				t.Error("its schema is still there")
			}
			if left := d.left(t); len(left) > 0 || d.stderr.String() != "" {
				t.Errorf("it leaves %q, and says %q", left, d.stderr.String())
			}
		})
	}
}

// schemaIsThere tells whether the schema that a demo named exists.
func schemaIsThere(t *testing.T, url, story string) bool {
	t.Helper()
	schema := regexp.MustCompile(`outboxd_demo_\w+`).FindString(story)
	db, err := openDemo(url, "information_schema") // every server has it
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	err = db.Pool().QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.schemata WHERE schema_name = '"+schema+"'").Scan(&n)
	if err != nil || schema == "" {
		t.Fatalf("schema %q: %v", schema, err)
	}
	return n > 0
}

// serverURL is the URL of a server for tests.
func serverURL(t *testing.T, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	switch {
	case url != "":
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not set", variable)
	default:
		t.Skipf("%s is not set: there is no server to play on", variable)
	}
	return url
}

// TestDemoByHand holds that Enter goes on, and that --keep leaves what it says.
func TestDemoByHand(t *testing.T) {
	t.Parallel()
	d := newDemo(t, "--keep")
	d.cmd.Stdin = strings.NewReader(strings.Repeat("\n", 6))
	if code := d.play(); code != exitOK || strings.Count(d.stdout.String(), "Enter goes on") != 6 {
		t.Fatalf("exit %d: %s\n%s", code, d.stderr.String(), d.stdout.String())
	}
	looks := regexp.MustCompile(`look +outboxd (.+) -c (\S+)`).FindAllStringSubmatch(d.stdout.String(), -1)
	if len(looks) != 5 {
		t.Fatalf("it names %q", looks)
	}
	for _, look := range looks {
		args := append(strings.Fields(look[1]), "-c", look[2])
		if code, stdout, stderr := cli(t, environment(), args...); code != exitOK || stdout == "" {
			t.Errorf("%q: exit %d: %s", args, code, stderr)
		}
	}
}

// TestForgetfulReceiver holds that the balance is counted, and not assumed.
func TestForgetfulReceiver(t *testing.T) {
	t.Parallel()
	d := newDemo(t, "--auto", "--forgetful")
	if code := d.play(); code != exitUnexpected || !strings.Contains(d.stderr.String(), "the balance does not hold: of 8 orders 0 are lost and 2 charged more than once") {
		t.Errorf("exit %d: %s\n%s", code, d.stderr.String(), d.stdout.String())
	}
}

// TestDemoStopped holds that a demo which is stopped leaves neither a process nor a folder.
func TestDemoStopped(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	started := regexp.MustCompile(`relay-1, process (\d+)`)
	eventually(t, "the relay", func() bool { return started.MatchString(d.stdout.String()) })
	pid, err := strconv.Atoi(started.FindStringSubmatch(d.stdout.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Process.Signal(syscall.SIGINT)
	_ = d.cmd.Wait() // its code is read below
	if code := d.cmd.ProcessState.ExitCode(); code != 130 || d.stderr.String() != "outboxd: the demo was stopped before its end\n" {
		t.Errorf("exit %d: %s", code, d.stderr.String())
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the relay still runs: %v", err)
	}
	if left := d.left(t); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// TestDemoCannotBe holds that what stands in the way of a demo is said in one line.
func TestDemoCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		env   string
		code  int
		words string
	}{
		"no folder":     {env: "TMPDIR=/nonexistent", code: exitUnexpected, words: "cannot make a temporary folder in /nonexistent: no such file or directory; set TMPDIR to one that can be written"},
		"no server":     {args: []string{"--db", "postgres://127.0.0.1:1/d"}, code: exitDatabase, words: "does not answer"},
		"a file":        {args: []string{"--db", "sqlite:shop.db"}, code: exitUsage, words: "--db wants the URL of a server"},
		"no URL at all": {args: []string{"--db", "hunter2"}, code: exitUsage, words: "--db: the database URL is not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDemo(t, append(c.args, "--auto")...)
			d.cmd.Env = append(d.cmd.Env, c.env)
			code := d.play()
			text := d.stderr.String()
			if code != c.code || !strings.Contains(text, c.words) || strings.Count(text, "\n") != 1 || strings.Contains(text, "hunter2") {
				t.Errorf("exit %d: %s", code, text)
			}
			if left := d.left(t); len(left) > 0 {
				t.Errorf("it leaves %q", left)
			}
		})
	}
}
