package dialecttest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// Physician looks at what goes wrong in practice.
type Physician interface {
	Diagnose(ctx context.Context, older time.Duration) []dialect.Finding
	DiagnoseApplication(ctx context.Context) []dialect.Finding
}

// Ailment is something that is wrong with an outbox, and what is found of it.
type Ailment struct {
	Name  string
	SQL   string // brings it about; empty: it is there already
	Check string
	As    dialect.Verdict
	Says  string // in what is wrong, or in the mend
}

// Diagnosed are the findings of an outbox that is well, and on which every engine agrees.
const Diagnosed = "schema, clock, transactions, tables, indexes, claim, leases, messages, insert"

// TestDiagnose holds an engine to what it finds, each brought about: those of every engine, and further ones. open makes an
// outbox with all tables.
func TestDiagnose(t *testing.T, further []Ailment, open func(t *testing.T) Backend) {
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		findings := open(t).Open().Diagnose(t.Context(), time.Hour)
		for check := range strings.SplitSeq(Diagnosed, ", ") {
			ExpectFinding(t, findings, check, dialect.VerdictOK, "")
		}
		for _, f := range findings {
			if f.Verdict == dialect.VerdictFault || f.What == "" || (f.Mend == "") != (f.Verdict == dialect.VerdictOK) {
				t.Errorf("%+v", f)
			}
		}
	})
	t.Run("a dead relay's lease", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		Fill(t, b) // r1 renewed its lease minutes ago
		ExpectFinding(t, b.Open().Diagnose(t.Context(), time.Hour), "leases", dialect.VerdictWarning, "leases of relay r1")
	})
	for name, course := range courses(further) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			for _, a := range course {
				execute(t, b, strings.ReplaceAll(a.SQL, otherIndex, b.Forms().OtherIndex))
				ExpectFinding(t, b.Open().Diagnose(t.Context(), time.Hour), a.Check, a.As, a.Says)
			}
		})
	}
}

// courses are what befalls an outbox, one ailment after the other: those of every engine, and each further one by itself.
func courses(further []Ailment) map[string][]Ailment {
	all := map[string][]Ailment{
		"versions": {
			{SQL: "INSERT INTO outbox_version (version, admits) VALUES (7, 1)", Check: "schema", As: dialect.VerdictWarning, Says: "version 7"},
			{SQL: "INSERT INTO outbox_version (version, admits) VALUES (8, 5)", Check: "schema", As: dialect.VerdictFault, Says: "install a newer outboxd"},
			{SQL: "DELETE FROM outbox_version", Check: "schema", As: dialect.VerdictFault, Says: "outboxd migrate up"},
		},
		"index, table and column": {
			{SQL: otherIndex, Check: "indexes", As: dialect.VerdictFault, Says: "outbox_due"},
			{Check: "claim", As: dialect.VerdictFault, Says: "outbox_due"},
			{SQL: "DROP TABLE outbox_control", Check: "tables", As: dialect.VerdictFault, Says: "table outbox_control is missing"},
			{SQL: "ALTER TABLE outbox DROP COLUMN send_id", Check: "tables", As: dialect.VerdictFault, Says: "no column send_id"},
		},
	}
	for _, a := range further {
		all[a.Name] = []Ailment{a}
	}
	return all
}

// otherIndex stands for the engine's own words.
const otherIndex = "{other index}"

// ExpectFinding wants a finding of that check and verdict with the text in what is wrong, or in its mend.
func ExpectFinding(t *testing.T, findings []dialect.Finding, check string, as dialect.Verdict, says string) {
	t.Helper()
	if !HasFinding(findings, check, as, says) {
		t.Errorf("no %s of %s with %q in %+v", as, check, says, findings)
	}
}

// HasFinding tells whether there is one.
func HasFinding(findings []dialect.Finding, check string, as dialect.Verdict, says string) bool {
	for _, f := range findings {
		if f.Check == check && f.Verdict == as && strings.Contains(f.What+"\n"+f.Mend, says) {
			return true
		}
	}
	return false
}
