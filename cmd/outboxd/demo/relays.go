package demo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// relays are the processes of outboxd, one at a time.
type relays struct {
	program string
	environ []string
	config  string
	log     string // the file that they write to

	running *relay
}

// relay is one process.
type relay struct {
	name  string
	cmd   *exec.Cmd
	log   *lastLine
	ended chan struct{}
}

// start starts one. That it works shows in what it does; one that ends by itself is an error of whoever waits for that.
func (r *relays) start(name string) error {
	file, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return cause(err)
	}
	p := &relay{name: name, log: &lastLine{file: file}, ended: make(chan struct{})}
	p.cmd = exec.Command(r.program, "run", "-c", r.config) //nolint:noctx // stop ends it, in order
	p.cmd.Env = append(r.environ, "OUTBOXD_RELAY_NAME="+name)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		return errors.Join(errors.New("the relay does not start: "+err.Error()), file.Close())
	}
	r.running = p
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is not asked: by kill, by stop, or by itself, which is an error anyway
		_ = file.Close()
	}()
	return nil
}

// kill ends the relay by SIGKILL: it can do nothing more, not even close a connection in order.
func (r *relays) kill() error {
	err := r.running.cmd.Process.Kill()
	<-r.running.ended
	r.running = nil
	return err
}

// failed tells whether the relay ended by itself, and what it said last.
func (r *relays) failed() error {
	if r.running == nil {
		return nil
	}
	select {
	case <-r.running.ended:
		return errors.New("the relay ended by itself: " + r.running.log.text())
	default:
		return nil
	}
}

// stop ends the relay in order, and by force if that takes long.
func (r *relays) stop() {
	if r.running == nil {
		return
	}
	if r.running.cmd.Process.Signal(os.Interrupt) != nil { // Windows has no such signal for others
		_ = r.running.cmd.Process.Kill()
	}
	select {
	case <-r.running.ended:
	case <-time.After(cleanUp):
		_ = r.kill()
	}
	r.running = nil
}

// command runs outboxd once, and gives what it printed.
func (r *relays) command(ctx context.Context, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, r.program, append(args, "-c", r.config)...)
	cmd.Env = r.environ
	text, err := cmd.CombinedOutput()
	output = strings.TrimSpace(string(text))
	if err != nil {
		return "", errors.New("outboxd " + args[0] + " does not do it: " + output)
	}
	return output, nil
}

// lastLine writes into a file and remembers the last line.
type lastLine struct {
	file *os.File
	mu   sync.Mutex
	line string
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lines := strings.Split(strings.TrimSpace(string(p)), "\n"); lines[0] != "" {
		l.line = lines[len(lines)-1]
	}
	return l.file.Write(p)
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}
