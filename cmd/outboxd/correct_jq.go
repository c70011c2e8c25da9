package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// change makes the new payload of the old one. errUnchanged: it stays as it is. Other errors say why there is none; they may
// quote the payload where they are a *quoting.
type change func(ctx context.Context, old []byte) ([]byte, error)

var errUnchanged = errors.New("unchanged")

// quoting is an error of an expression, with parts of the payload in its words.
type quoting struct{ err error }

func (q *quoting) Error() string { return "the expression gives an error" }
func (q *quoting) Unwrap() error { return q.err }

// newExpression compiles a jq expression. It reads no file, no environment and no other input.
func newExpression(text string) (change, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, usagef("--jq: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, usagef("--jq: %w", err)
	}
	return func(ctx context.Context, old []byte) ([]byte, error) {
		before, plain, err := parsePayload(old)
		if err != nil {
			return nil, err
		}
		after, err := single(code.RunWithContext(ctx, before))
		if err != nil {
			return nil, err
		}
		payload, err := gojq.Marshal(after)
		if err == nil && bytes.Equal(payload, plain) {
			err = errUnchanged
		}
		return payload, err
	}, nil
}

// single is the one value of a run.
func single(run gojq.Iter) (any, error) {
	value, ok := run.Next()
	if !ok {
		return nil, errors.New("the expression gives no value")
	}
	if err, failed := value.(error); failed {
		return nil, &quoting{err}
	}
	if _, more := run.Next(); more {
		return nil, errors.New("the expression gives more than one value")
	}
	return value, nil
}

// surrogate is how JSON writes half of a character, replaced how a reader writes a half that has no other one.
var (
	surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	replaced  = regexp.MustCompile(`\x{FFFD}|\\u[fF]{3}[dD]`)
)

// parsePayload reads a payload as gojq wants it, numbers as they are written, and gives also how gojq writes it.
func parsePayload(payload []byte) (value any, plain []byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil || !utf8.Valid(payload) {
		return nil, nil, errors.New("its payload is no JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("its payload is not one JSON value")
	}
	if plain, err = gojq.Marshal(value); err != nil {
		return nil, nil, fmt.Errorf("its payload cannot be written again: %w", err)
	}
	if surrogate.Match(payload) && len(replaced.FindAll(plain, -1)) > len(replaced.FindAll(payload, -1)) {
		return nil, nil, errors.New("its payload has half of a surrogate pair, which would be lost")
	}
	return value, plain, nil
}
