package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadingDoc runs every command of docs/reading.md, and holds its tables of flags to what the commands take.
func TestReadingDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	s := migrated(t)
	broken(s)
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), " > ")
			args := strings.Fields(command)[1:]
			code, stdout, stderr := cli(t, s.env(), args...)
			if want := args[0] == "check"; (code != exitOK) != want || code > int(levelCritical) || stdout == "" && !strings.Contains(command, "jsonl") {
				t.Errorf("%s: exit %d, %q: %s", command, code, stdout, stderr)
			}
			ran++
		}
	}
	if ran < 15 {
		t.Errorf("%d commands were found", ran)
	}
	flags := map[string]bool{}
	for _, command := range []string{"list", "check", "stats", "errors", "operations"} {
		_, help, _ := cli(t, environment(), command, "--help")
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(help, -1) {
			flags[flag] = true
		}
	}
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
	for _, flag := range regexp.MustCompile("`(--[a-z-]+)`").FindAllStringSubmatch(prose, -1) {
		if !flags[flag[1]] {
			t.Errorf("docs/reading.md has %s, which no command takes", flag[1])
		}
	}
}
