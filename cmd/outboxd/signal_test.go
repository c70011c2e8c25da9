package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// child starts this test binary as outboxd; its standard error is read line by line.
func child(t *testing.T, env []string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(env, asMain+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // most have ended by now
	return cmd, bufio.NewScanner(stderr)
}

// wait reads until a line holds words.
func wait(t *testing.T, lines *bufio.Scanner, words string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), words) {
			return
		}
	}
	t.Fatalf("it ended without saying %q", words)
}

func exitOf(cmd *exec.Cmd, lines *bufio.Scanner) int {
	for lines.Scan() { // Wait must not come before the end of the pipe
	}
	_ = cmd.Wait() // its code is read below
	return cmd.ProcessState.ExitCode()
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String()+" ends run in order, but for SIGHUP", func(t *testing.T) {
			t.Parallel()
			cmd, lines := child(t, []string{"OUTBOXD_DATABASE_URL=postgres://127.0.0.1:1/d", "OUTBOXD_LISTEN=off"},
				"run", "-c", "testdata/config/stdout.yaml")
			wait(t, lines, "waiting for the database")
			_ = cmd.Process.Signal(signal)
			if signal == syscall.SIGHUP {
				wait(t, lines, "configuration reloaded")
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			if code := exitOf(cmd, lines); code != exitOK {
				t.Errorf("exit %d", code)
			}
		})
		t.Run(signal.String()+" ends another command with its code", func(t *testing.T) {
			t.Parallel()
			url, asked := silent(t)
			cmd, lines := child(t, []string{"OUTBOXD_DATABASE_URL=" + url}, "list")
			<-asked
			_ = cmd.Process.Signal(signal)
			if code := exitOf(cmd, lines); code != 128+int(signal) {
				t.Errorf("exit %d", code)
			}
		})
	}
}

// TestSecondSignal holds that a stop which takes long can be cut short.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.insert(1, "orders", "order_paid")
	// Nobody reads the standard output, so that the send hangs and the stop waits for it.
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	fill(t, writer)
	cmd := exec.Command(os.Args[0], "run", "-c", "testdata/config/stdout.yaml")
	cmd.Env = []string{asMain + "=1", envDatabase + "=" + s.url, "OUTBOXD_DATABASE_SCHEMA=" + s.schema, "OUTBOXD_LISTEN=off"}
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	eventually(t, "in flight", func() bool { return s.count("state = 'in_flight'") == 1 })
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait() // its code is read below
	if code := cmd.ProcessState.ExitCode(); code != 130 && code != 143 {
		t.Errorf("exit %d", code)
	}
	if s.count("state = 'in_flight'") != 1 {
		t.Error("it did not end at once")
	}
}

// fill writes into a pipe until it takes no more.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	fd := int(pipe.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := syscall.Write(fd, make([]byte, 4096)); err != nil {
			break
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}

// silent is a database that takes a connection and never says a word.
func silent(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	heard := make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		first := make([]byte, 1)
		_, _ = conn.Read(first)
		close(heard)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return "postgres://" + listener.Addr().String() + "/d?sslmode=disable", heard
}
