package program

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Defaults of Config. relay/DESIGN.md, Defaults.
const (
	DefaultWidth   = 2
	DefaultTimeout = 60 * time.Second // of one send, before SIGTERM
	DefaultGrace   = 5 * time.Second
	DefaultCutOff  = 400 * time.Millisecond
	defaultDir     = "/"
	maxStringBytes = 128 << 10 // of an argument, or a variable and its value, with a NUL at the end (execve(2), MAX_ARG_STRLEN)
)

// Config says which program is executed and what it gets.
type Config struct {
	Command []string          // argv: an absolute path, or a name that is looked up in Path, and its arguments; no part of it comes from a message
	Dir     string            // an absolute path; default /
	Env     map[string]string // variables beside those of the message, by name; their values are secrets to every output, from 8 bytes on
	Grace   time.Duration     // between SIGTERM and SIGKILL; SIGTERM comes so long before the deadline of Send; default 5 s
	CutOff  time.Duration     // the same of a send whose context ends before its deadline; default 400 ms

	Outcomes map[string]relay.Rule // by exit code, "3"

	// Self is the program that runs Hold and Guard when its first argument is HoldCommand or GuardCommand: this one, "/proc/self/exe".
	// Needed on Linux only, so that a session ends with the relay.
	Self string
}

func (c Config) withDefaults() Config {
	if c.Dir == "" {
		c.Dir = defaultDir
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.CutOff == 0 {
		c.CutOff = DefaultCutOff
	}
	return c
}

// Validate names every setting that cannot work, and what to write instead, as `program.KEY: words`. It looks at no file:
// a program that is missing here may be there where the relay runs. No error holds an argument or the value of a variable.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("program."+key+": "+format, args...))
		}
	}
	check(len(c.Command) > 0 && c.Command[0] != "", "command", "is empty; name the program by an absolute path, such as [/usr/local/bin/charge, --live]")
	if len(c.Command) > 0 {
		name := c.Command[0]
		check(strings.HasPrefix(name, "/") || !strings.Contains(name, "/"), "command[0]", "is neither an absolute path nor a plain name; write all of it, from the first / on")
	}
	for i, arg := range c.Command {
		key := fmt.Sprintf("command[%d]", i)
		check(!strings.Contains(arg, "\x00"), key, "has a NUL in it, which no argument can have")
		check(len(arg) < maxStringBytes, key, "is longer than the 128 KiB that Linux takes")
	}
	check(strings.HasPrefix(c.Dir, "/"), "dir", "is no absolute path; write one, such as /var/lib/charge")
	check(c.Grace > 0, "grace", "is negative")
	check(c.CutOff > 0, "cut_off", "is negative")
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		check(IsVariable(name), "env", "%.80q is no name of a variable", name)
		check(!IsOfMessage(name), "env", "%.80s is set by the relay; take it out", name)
		check(!strings.Contains(c.Env[name], "\x00"), "env", "the value of %.80s has a NUL in it", name)
		check(len(name+"="+c.Env[name]) < maxStringBytes, "env", "the value of %.80s is longer than the 128 KiB that Linux takes; put it into a file, and name that", name)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Outcomes)) {
		check(IsExitCode(key), "outcomes", `%.80q is no exit code such as "3"`, key)
		if err := c.Outcomes[key].Check(); err != nil && IsExitCode(key) {
			check(false, "outcomes."+key, "%w", err)
		}
	}
	return errors.Join(errs...)
}

// IsExitCode tells whether a text is a number that a program can end with, as a person writes it: 0 to 255.
func IsExitCode(text string) bool {
	n, err := strconv.ParseUint(text, 10, 8)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// IsVariable tells whether every shell and runtime takes a name for that of a variable (POSIX.1-2017, 8.1, and lower case).
func IsVariable(name string) bool {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name)
}
