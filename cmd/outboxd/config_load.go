package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

const maxConfig = 1 << 20

// loaded is a configuration with the place that each value came from.
type loaded struct {
	config   config
	file     string
	decoder  *decoder
	origins  map[string]string // by path, where it is neither the file nor a default
	problems problems
	warnings []string
}

// load reads the file, if there is one, then the environment over it, and checks the whole. The configuration comes back
// beside an error too, as far as it could be read.
func load(file string, env lookup) (*loaded, error) {
	l := &loaded{config: defaultConfig(), file: file, decoder: newDecoder(), origins: map[string]string{}}
	if file != "" {
		text, err := readConfig(file)
		if err != nil {
			return l, &configError{problems: problems{{text: err.Error()}}}
		}
		l.decoder = decode(text, &l.config)
		l.problems = l.decoder.problems
	}
	l.overlay(env)
	l.check()
	if len(l.problems) > 0 {
		return l, &configError{file: file, problems: l.problems}
	}
	return l, nil
}

// readConfig reads a file of at most maxConfig bytes: another one is not a configuration.
func readConfig(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fileError(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	switch {
	case err != nil:
		return nil, fileError(err)
	case len(text) > maxConfig:
		return nil, fmt.Errorf("%s is larger than 1 MiB: it is no configuration of outboxd", name)
	}
	return text, nil
}

// fail notes a mistake at a key's path: with its place in the file, or that of the nearest section around it, or with the
// variable that the value came from.
func (l *loaded) fail(path, format string, args ...any) {
	if l.decoder.broken[path] {
		return
	}
	at := path
	for l.decoder.at[at].line == 0 && l.origins[at] == "" && at != "" {
		at, _ = cut(at)
	}
	p := problem{place: l.decoder.at[at], path: path, text: fmt.Sprintf(format, args...)}
	if from := l.origins[at]; from != "" {
		p.place = place{}
		p.text += " (it comes from the " + from + ")"
	}
	l.problems = append(l.problems, p)
}

// failEach notes the mistakes that a sink found in its settings, each on a line that begins with a key's path and a colon;
// but not where one is known already, there or below.
func (l *loaded) failEach(path, prefix string, err error) {
	for line := range strings.SplitSeq(errorText(err), "\n") {
		key, words, found := strings.Cut(strings.TrimPrefix(line, prefix), ": ")
		here := l.given(path + "." + key)
		isKnown := func(p problem) bool {
			below, inside := strings.CutPrefix(p.path, here)
			return inside && (below == "" || strings.ContainsAny(below[:1], ".["))
		}
		if found && !slices.ContainsFunc(l.problems, isKnown) {
			l.fail(here, "%s", words)
		}
	}
}

// given is the path of the key that gives the value of a path, which may be a secret's.
func (l *loaded) given(path string) string {
	for _, suffix := range []string{"", "_file", "_env"} {
		if l.set(path + suffix) {
			return path + suffix
		}
	}
	if section, key := cut(path); section != "" && l.set(join(section+"_file", key)) { // headers_file
		return join(section+"_file", key)
	}
	return path
}

// set tells whether the file or the environment gives a value for the path.
func (l *loaded) set(path string) bool { return l.decoder.at[path].line > 0 || l.origins[path] != "" }

// origin says where the value at a path came from.
func (l *loaded) origin(path string) string {
	if from := l.origins[path]; from != "" {
		return from
	}
	if at := l.decoder.at[path]; at.line > 0 {
		return l.file + ":" + strconv.Itoa(at.line)
	}
	return "default"
}

// cut takes the last key, or number in a list, off a path.
func cut(path string) (section, key string) {
	i := max(strings.LastIndexAny(path, ".["), 0)
	return path[:i], strings.TrimLeft(path[i:], ".[")
}
