package main

import (
	"bufio"
	"context"
	"errors"
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
			code := d.play()
			crashes := strings.Count(d.stdout.String(), "(the crash was not charged)")
			if code != exitOK || !goodBalance.MatchString(d.stdout.String()) || crashes != 1 {
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

// TestDemoByHand holds that Enter goes on, and that --keep leaves what it says: a shell takes its lines as they are, under
// an environment that leads elsewhere.
func TestDemoByHand(t *testing.T) {
	t.Parallel()
	d := newDemo(t, "--keep")
	d.cmd.Path = copyOf(t, os.Args[0])
	d.cmd.Args[0] = d.cmd.Path
	d.cmd.Env = append(d.cmd.Env, envDatabase+"=postgres://127.0.0.1:1/elsewhere")
	d.cmd.Stdin = strings.NewReader(strings.Repeat("\n", 6))
	if code := d.play(); code != exitOK || strings.Count(d.stdout.String(), "Press Enter to go on") != 6 {
		t.Fatalf("exit %d: %s\n%s", code, d.stderr.String(), d.stdout.String())
	}
	looks := regexp.MustCompile(`look {2,}(.+)`).FindAllStringSubmatch(d.stdout.String(), -1)
	if len(looks) != 5 {
		t.Fatalf("it names %q", looks)
	}
	for _, look := range looks {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", look[1])
		cmd.Env = d.cmd.Env
		if text, err := cmd.Output(); err != nil || len(text) == 0 {
			t.Errorf("%q: %v: %s", look[1], err, text)
		}
	}
}

// copyOf is a program outside of where go build and go run keep theirs.
func copyOf(t *testing.T, program string) string {
	t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "outboxd")
	if err := os.WriteFile(name, text, 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return name
}

// TestAsCalled holds that a program of go run is named so that it can be called again.
func TestAsCalled(t *testing.T) {
	t.Parallel()
	for executable, want := range map[string]string{
		"/tmp/go-build12/b001/exe/outboxd":        "env -u OUTBOXD_DATABASE_URL go run ./cmd/outboxd",
		"/home/u/.cache/go-build/ab/cd-d/outboxd": "env -u OUTBOXD_DATABASE_URL go run ./cmd/outboxd",
		"/usr/local/bin/outboxd":                  "env -u OUTBOXD_DATABASE_URL " + os.Args[0],
	} {
		if got := (&program{env: environment(envDatabase + "=x")}).asCalled(executable); got != want {
			t.Errorf("%s: %q, want %q", executable, got, want)
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

// TestDemoStopped holds that a demo which is stopped, whose terminal is closed or whose output nobody reads on, leaves
// neither a process nor a folder nor a schema.
func TestDemoStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variable string
		stop     func(*os.Process, *os.File)
		code     int
	}{
		"interrupt": {stop: func(p *os.Process, _ *os.File) { _ = p.Signal(syscall.SIGINT) }, code: 130},
		"hang-up":   {stop: func(p *os.Process, _ *os.File) { _ = p.Signal(syscall.SIGHUP) }, code: 129},
		"cut off": {
			variable: "OUTBOXD_TEST_POSTGRES_URL",
			stop:     func(_ *os.Process, out *os.File) { _ = out.Close() }, code: exitUnexpected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args []string
			if c.variable != "" {
				args = []string{"--db", serverURL(t, c.variable)}
			}
			d := newDemo(t, args...)
			story, process, code := d.stopped(t, c.stop)
			if code != c.code || d.stderr.String() != "outboxd: the demo was stopped before its end\n" {
				t.Errorf("exit %d: %s", code, d.stderr.String())
			}
			if err := syscall.Kill(process, 0); err != syscall.ESRCH {
				t.Errorf("the relay still runs: %v", err)
			}
			if left := d.left(t); len(left) > 0 {
				t.Errorf("it leaves %q", left)
			}
			if c.variable != "" && schemaIsThere(t, serverURL(t, c.variable), story) {
				t.Error("its schema is still there")
			}
		})
	}
}

// stopped plays until the first relay runs, and then stops it. It gives what was read until then, and the relay's process.
func (d *demonstration) stopped(t *testing.T, stop func(*os.Process, *os.File)) (story string, process, code int) {
	t.Helper()
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	d.cmd.Stdout = writer
	if err := errors.Join(d.cmd.Start(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	started := regexp.MustCompile(`relay-1, process (\d+)`)
	for lines := bufio.NewScanner(reader); process == 0 && lines.Scan(); {
		story += lines.Text() + "\n"
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			process, _ = strconv.Atoi(m[1])
		}
	}
	stop(d.cmd.Process, reader)
	_ = d.cmd.Wait() // its code is read below
	return story, process, d.cmd.ProcessState.ExitCode()
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
