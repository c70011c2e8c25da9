package main

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes that scripts may rely on.
const (
	exitOK            = 0 // also of an empty list
	exitUnexpected    = 1
	exitUsage         = 2
	exitConfiguration = 3
	exitNotFound      = 4
	exitNoMatch       = 5 // with --require-match: nothing to change
	exitDatabase      = 6 // unreachable, or its schema is wrong
	exitDestination   = 7 // a destination cannot be reached, or not as it is configured
	exitPartly        = 8 // some of it was done
	exitNotAllowed    = 9
)

// failure is an error with the exit code that it ends in.
type failure struct {
	code int
	err  error // nil: all is said
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func failf(code int, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// told ends a command with a code, and prints nothing more: what there is to say was its output. 0 is no error.
func told(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// exitCode maps what a command returned to the code of the process.
func exitCode(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[*configError](err); ok {
		return exitConfiguration
	}
	if s, ok := errors.AsType[stopped](context.Cause(ctx)); ok {
		return s.code()
	}
	return databaseCode(err)
}
