// Command outboxd is the relay daemon and its command line: it reads the configuration, plugs database, relay and
// destinations together, and serves health checks and metrics. Start reading at run.go.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	log.SetOutput(io.Discard) //nolint:forbidigo // net/http writes there what a server sends unasked, word for word
	if code, asked := own(os.Args[1:]); asked {
		os.Exit(code)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	p := newProgram(os.Stdin, os.Stdout, os.Stderr)
	go obey(signals, p.hangups, cancel)
	os.Exit(p.run(ctx, os.Args[1:]))
}

// obey ends the command at the first signal, and the process at once at a second one. SIGHUP is neither where the command
// reloads at it.
func obey(signals <-chan os.Signal, hangups *hangups, end context.CancelCauseFunc) {
	ending := false
	for s := range signals {
		switch {
		case s == syscall.SIGHUP && hangups.tell():
		case ending:
			os.Exit(stopped{s}.code())
		default:
			ending = true
			end(stopped{s})
		}
	}
}

// newProgram is the program in its own process, all but its signals and its exit.
func newProgram(stdin io.Reader, stdout, stderr io.Writer) *program {
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return &program{env: os.LookupEnv, names: names, stdin: stdin, stdout: stdout, stderr: stderr, hangups: newHangups()}
}

// stopped is the cause of a context that a signal ended.
type stopped struct{ os.Signal }

func (s stopped) Error() string { return "stopped by " + s.String() }

// code is the shells' 128 and the signal's number.
func (s stopped) code() int {
	if number, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitUnexpected
}
