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
	go func() {
		cancel(stopped{<-signals})
		os.Exit(stopped{<-signals}.code()) // a second signal ends the process at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program but for signals and exit: it executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	p := &program{env: os.LookupEnv, names: names, stdin: stdin, stdout: stdout, stderr: stderr}
	return p.run(ctx, args)
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
