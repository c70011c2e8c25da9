package dialect

import "strings"

// CheckApplication names what is told of an application's role.
const CheckApplication = "application"

// Application is what its role may do with table outbox.
type Application struct {
	Role      string // for a sentence
	Lacks     []string
	Exceeds   []string // what no application needs
	Elsewhere bool     // without a schema before its name, the table is not found, or another one is
	Grant     string   // the mend of what it lacks
}

// FoundApplication judges them. Without the rights to read, it can still write, but cannot ask what became of a message.
func FoundApplication(a Application) []Finding {
	var findings []Finding
	for _, right := range a.Lacks {
		if strings.HasPrefix(right, "INSERT") {
			findings = append(findings, Wrong(CheckApplication, a.Grant, "%s may not %s on table outbox", a.Role, right))
		} else {
			findings = append(findings, Warn(CheckApplication, a.Grant, "%s may not %s on table outbox: it cannot ask what became of a message, nor use RETURNING", a.Role, right))
		}
	}
	if len(a.Exceeds) > 0 {
		findings = append(findings, Warn(CheckApplication, "let the application log in as a role of its own, with no more than outbox_application",
			"%s may %s on table outbox, which no application should: a relay counts on what it wrote there", a.Role, strings.Join(a.Exceeds, ", ")))
	}
	if a.Elsewhere {
		findings = append(findings, Warn(CheckApplication, "write the schema before the table's name, or set the role's search_path",
			"%s does not find this table by the name outbox alone", a.Role))
	}
	if findings == nil {
		return []Finding{Fine(CheckApplication, "%s may write messages and read what became of them, and nothing else", a.Role)}
	}
	return findings
}
