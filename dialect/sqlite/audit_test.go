package sqlite

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestAudits(t *testing.T) {
	t.Parallel()
	dialecttest.TestAudits(t, func(t *testing.T) dialecttest.Backend { return seen{newFile(t), t} })
}

// The audits run as they are in the shell, where the message is a parameter.
func TestAuditsRunInShell(t *testing.T) {
	t.Parallel()
	shell := dialecttest.Client(t, "sqlite3")
	f := newFile(t)
	dialecttest.FillForAudits(t, seen{f, t})
	all, err := f.open(t, dialect.Options{}).Audits()
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string) string {
		cmd := exec.CommandContext(t.Context(), shell, "-bail", "-readonly", f.path)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("sqlite3: %v\n%s", err, out)
		}
		return string(out)
	}
	for _, a := range all {
		if out := run(a.SQL); out == "" {
			t.Errorf("%s prints nothing", a.Name)
		}
		if a.Name == dialect.AuditOfOne {
			id := dialecttest.ID("8")
			if out := run(`.parameter set @outbox_id "'` + id + `'"` + "\n" + a.SQL); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, id+"|") {
				t.Errorf("attempts of 8: %s", out)
			}
		}
	}
}
