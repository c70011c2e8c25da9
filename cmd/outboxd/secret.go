package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
)

// masked is what every output shows of a secret.
const masked = "<secret>"

// Secret is text that no output shows: it prints as a mask with every verb of fmt, in JSON, in YAML and in logs.
// Reveal is the only way to its value.
type Secret struct{ value string }

// Reveal returns the value itself, for the one call that needs it.
func (s Secret) Reveal() string { return s.value }

// IsZero tells whether there is no secret, so that YAML can leave it out.
func (s Secret) IsZero() bool { return s.value == "" }

// Format, MarshalText and LogValue show the mask, or nothing where there is no secret. Format is for every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, s.mask()) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.mask()), nil } //nolint:unparam // encoding.TextMarshaler
func (s Secret) LogValue() slog.Value         { return slog.StringValue(s.mask()) }

func (s Secret) mask() string {
	if s.IsZero() {
		return ""
	}
	return masked
}

// secretSource is the three ways to give a secret, of which exactly one is used: x, x_file and x_env.
type secretSource struct {
	value     Secret
	file, env string
}

// given counts how many of the three are there.
func (s secretSource) given() int {
	n := 0
	for _, there := range []bool{!s.value.IsZero(), s.file != "", s.env != ""} {
		if there {
			n++
		}
	}
	return n
}

// key is the key that gives the secret, which has that one without _file or _env.
func (s secretSource) key(name string) string {
	switch {
	case s.file != "":
		return name + "_file"
	case s.env != "":
		return name + "_env"
	}
	return name
}

// source reads the secret whenever it is asked, so that a file can be replaced; it is nil where none is given.
func (s secretSource) source(env lookup) func() (string, error) {
	if s.given() == 0 {
		return nil
	}
	return func() (string, error) {
		secret, err := s.read(env)
		return secret.Reveal(), err
	}
}

// read returns the secret, without the line end that editors and `echo` put behind it. Its errors name the source, never
// what it holds.
func (s secretSource) read(lookup func(string) (string, bool)) (Secret, error) {
	switch {
	case s.file != "":
		text, err := os.ReadFile(s.file)
		if err != nil {
			return Secret{}, fileError(err)
		}
		return nonEmpty(string(text), "the file "+s.file)
	case s.env != "":
		text, _ := lookup(s.env)
		return nonEmpty(text, "the environment variable "+s.env)
	default:
		return s.value, nil
	}
}

func nonEmpty(text, where string) (Secret, error) {
	text = strings.TrimRight(text, "\r\n")
	if text == "" {
		return Secret{}, errors.New(where + " is empty or not there")
	}
	return Secret{text}, nil
}

// fileError says in one line why a file could not be read.
func fileError(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	return errors.New("cannot read " + path.Path + ": " + path.Err.Error())
}
