package integration

import (
	"regexp"
	"strings"
	"testing"
)

// byCommands works through the night with the commands of docs/operations.md, and holds what they print to what is shown
// there.
func byCommands(t *testing.T, n *badNight) {
	for _, b := range n.page(t) {
		shown, isCommand := strings.CutPrefix(b.text, "$ outboxd ")
		if b.language != "text" || !isCommand {
			continue
		}
		line, shown, _ := strings.Cut(shown, "\n")
		args := words(line)
		n.before(t, args[0])
		url := n.operator
		switch args[0] {
		case "errors", "check", "operations":
			url = n.reader
		case "correct":
			url = n.corrector
		}
		stdout, stderr, code := outboxd(t, []string{"OUTBOXD_DATABASE_URL=" + url}, args...)
		if code != 0 {
			t.Fatalf("outboxd %s: exit code %d\n%s%s", line, code, stdout, stderr)
		}
		t.Logf("$ outboxd %s\n%s%s", line, stdout, stderr)
		expectShown(t, line, shown, stdout+stderr)
		n.after(t, args[0])
	}
}

// words are those of a command line; what stands in double quotes is one.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// expectShown looks for each line that the page shows in what a command printed, whatever the names and figures are.
func expectShown(t *testing.T, command, shown, printed string) {
	t.Helper()
	lines := map[string]bool{}
	for line := range strings.Lines(printed) {
		lines[likeAny(line)] = true
	}
	for line := range strings.Lines(shown) {
		if !lines[likeAny(line)] {
			t.Errorf("docs/operations.md shows of outboxd %s\n%sand it printed\n%s", command, line, printed)
			return
		}
	}
}

// likeAny is a line without what differs from run to run.
func likeAny(line string) string {
	for _, p := range []struct{ like, becomes string }{
		{`[0-9a-f]{8}-[0-9a-f-]{27}`, "ID"},
		{`\d{4}-\d\d-\d\dT[0-9:.]+Z`, "TIME"},
		{`\S+@\S+`, "WHO"},
		{` \(left as they are: [^)]*\)`, ""},
		{`\d+(\.\d+)?\+?`, "N"},
		{`\s+`, " "},
	} {
		line = regexp.MustCompile(p.like).ReplaceAllString(line, p.becomes)
	}
	return strings.TrimSpace(line)
}
