package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ask asks a person for each answer that is missing, until it can be one. Where nobody answers any more it ends.
func (a *answers) ask(ctx context.Context, from io.Reader, out io.Writer) error {
	in := bufio.NewReader(from)
	for i := range a.questions() {
		for {
			q := a.questions()[i] // whether it applies hangs on the answers before
			if !q.applies || *q.into != "" {
				break
			}
			fmt.Fprint(out, q.prompt())
			answer, err := readLine(ctx, in)
			if errors.Is(err, io.EOF) {
				fmt.Fprintln(out)
				return nil
			}
			if err != nil {
				return err
			}
			*q.into = orElse(answer, q.usual)
			if wrong := a.wrong(q); wrong != nil {
				fmt.Fprintln(out, "  "+wrong.Error())
				*q.into = ""
			}
		}
	}
	return nil
}

// wrong says why the answer to a question cannot be, by itself or in the configuration.
func (a *answers) wrong(q question) error {
	if err := q.wrong(); err != nil || q.key == "" {
		return err
	}
	for _, found := range a.problems() {
		if strings.HasPrefix(found.path, q.key) {
			return errors.New(found.text)
		}
	}
	return nil
}

func (q question) prompt() string {
	words := q.text
	if len(q.choices) > 0 {
		words += " " + choice(q.choices) + "?"
	}
	if q.usual != "" {
		words += " [" + q.usual + "]"
	}
	return words + " "
}

// readLine reads what a person writes, and ends with ctx: whoever presses Ctrl-C has not answered.
func readLine(ctx context.Context, in *bufio.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	came := make(chan read, 1)
	go func() {
		line, err := in.ReadString('\n')
		came <- read{line, err}
	}()
	select {
	case r := <-came:
		return strings.TrimSpace(r.line), r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
