package dialect

import (
	"strings"
	"testing"
)

// Every engine answers the same questions, in files that open with them.
func TestAudits(t *testing.T) {
	t.Parallel()
	asItIs := func(text string) (string, error) { return text, nil }
	questions := map[string]string{}
	for _, engine := range []string{Postgres, MySQL, SQLite} {
		audits, err := Audits(engine, asItIs)
		if err != nil || len(audits) < 10 {
			t.Fatalf("%s has %d audits: %v", engine, len(audits), err)
		}
		for _, a := range audits {
			if engine == Postgres {
				questions[a.Name] = a.Question
			}
			if a.Question != questions[a.Name] {
				t.Errorf("%s, %s: %q, want %q", engine, a.Name, a.Question, questions[a.Name])
			}
			if !strings.HasPrefix(a.SQL, "-- ") || strings.ContainsAny(a.Question, "-\n") || !strings.HasSuffix(a.SQL, ";\n") || strings.Count(a.SQL, ";\n") != 1 {
				t.Errorf("%s, %s is not a question and one statement: %q", engine, a.Name, a.Question)
			}
			if engine != SQLite && strings.Count(a.SQL, "/*schema.*/") == 0 {
				t.Errorf("%s, %s: no place for the schema", engine, a.Name)
			}
		}
		if len(audits) != len(questions) {
			t.Errorf("%s has %d audits, want %d", engine, len(audits), len(questions))
		}
	}
}
