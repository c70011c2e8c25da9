package program

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
)

// The steps of Test, in their order.
const (
	stepCommand     = "command"
	stepInterpreter = "interpreter"
	stepDir         = "dir"
)

// Test tries whether the program can be started, without starting it: where it is, what interprets it if it is a script,
// and the directory. told hears of each step; after one with an error no other comes. Words and errors are one line, and
// hold no argument and no value of a variable.
func (s *Sink) Test(_ context.Context, told func(step, words string, err error)) {
	path, err := s.place.path()
	told(stepCommand, path, err)
	if err != nil {
		return
	}
	if interpreter := interpreterOf(path); interpreter != "" {
		_, err := executable(interpreter)
		told(stepInterpreter, interpreter, err)
		if err != nil {
			return
		}
	}
	told(stepDir, s.cfg.Dir, directory(s.cfg.Dir))
}

// interpreterOf is the program that the first line of a script names, "#!/usr/bin/python3 -I"; empty where path is none, or
// cannot be read.
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	rest, script := strings.CutPrefix(line, "#!")
	if words := strings.Fields(rest); script && len(words) > 0 {
		return words[0]
	}
	return ""
}
