package dialect

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Verdict says how a finding is meant.
type Verdict string

// All verdicts.
const (
	VerdictOK      Verdict = "ok"      // as it should be, or only told
	VerdictWarning Verdict = "warning" // it works, and can cost time, room or certainty; or it could not be seen
	VerdictFault   Verdict = "fault"   // no relay or no application can work like this
)

// Finding is what a diagnosis tells of one thing, in a line, with the mend in another where there is something to mend.
type Finding struct {
	Check   string  `json:"check"` // what was looked at, in a word or two
	Verdict Verdict `json:"verdict"`
	What    string  `json:"what"`
	Mend    string  `json:"mend,omitempty"`
}

// Fine makes a finding that needs nothing.
func Fine(check, format string, args ...any) Finding {
	return Finding{Check: check, Verdict: VerdictOK, What: fmt.Sprintf(format, args...)}
}

// Warn makes a warning; mend says what to do.
func Warn(check, mend, format string, args ...any) Finding {
	return Finding{Check: check, Verdict: VerdictWarning, What: fmt.Sprintf(format, args...), Mend: mend}
}

// Wrong makes a fault; mend says what to do.
func Wrong(check, mend, format string, args ...any) Finding {
	return Finding{Check: check, Verdict: VerdictFault, What: fmt.Sprintf(format, args...), Mend: mend}
}

// FoundError makes a fault of what a look came to. Errors of this package say what it is up to the first colon, and then
// the mend.
func FoundError(check string, err error) Finding {
	text, code := err.Error(), ""
	if database, ok := errors.AsType[*Error](err); ok {
		text = database.Words
		if database.Code != "" {
			code = " (" + database.Code + ")"
		}
	}
	what, mend, _ := strings.Cut(text, ": ")
	return Wrong(check, mend, "%s%s", what, code)
}

// FoundSchema judges the tables' version.
func FoundSchema(s SchemaStatus) Finding {
	const check = "schema"
	switch s.State {
	case SchemaCurrent:
		return Fine(check, "the tables in %s are at version %d, which this outboxd was built for", s.Place, s.Version)
	case SchemaNewer:
		return Warn(check, "upgrade this outboxd when it suits", "the tables in %s are at version %d, newer than the %d of this outboxd; they admit it, since they admit %d and later",
			s.Place, s.Version, s.Needed, s.Admits)
	default:
		return FoundError(check, s.Err())
	}
}

// FoundClock tells how far the database's clock is from this host's, as a question that was asked at one moment and answered
// at the other. No decision depends on it: due times, leases and ages are by the database's clock alone.
func FoundClock(database, asked, answered time.Time) Finding {
	trip := max(answered.Sub(asked), time.Millisecond)
	ahead := database.Sub(asked.Add(trip / 2))
	words := "agrees with this host's"
	switch {
	case ahead > trip:
		words = "is " + Age(ahead).String() + " ahead of this host's"
	case -ahead > trip:
		words = "is " + Age(-ahead).String() + " behind this host's"
	}
	return Fine("clock", "the database's clock %s, to within %s; it alone decides what is due", words, Age(trip))
}

// Hold is what keeps a database from forgetting old versions of rows: every claim then walks past the dead ones.
type Hold struct {
	Name string // such as the transaction of pid 4711
	More string // whose it is and what it does, such as user shop, idle in transaction; may be empty
	For  Age
	End  string // what a person does to end it
}

// FoundHolds tells of each, or that there is none that is older than the given age.
func FoundHolds(holds []Hold, older time.Duration) []Finding {
	const check = "transactions"
	if len(holds) == 0 {
		return []Finding{Fine(check, "no transaction is older than %s", Age(older))}
	}
	findings := make([]Finding, 0, len(holds))
	for _, h := range holds {
		more := ""
		if h.More != "" {
			more = " (" + h.More + ")"
		}
		findings = append(findings, Warn(check, h.End, "%s%s has been open for %s: rows that died since then may have to stay, and claims walk past them",
			h.Name, more, h.For))
	}
	return findings
}

// EndedLease is of a relay whose leases stood still for longer than their length.
type EndedLease struct {
	Relay  string
	Leases int
	Ended  Age // since the oldest of them ended
}

// FoundLeases tells of leases that ended and that no relay took back.
func FoundLeases(ended []EndedLease) []Finding {
	const check = "leases"
	var findings []Finding
	for _, e := range ended {
		if time.Duration(e.Ended) < reclaimed {
			continue
		}
		findings = append(findings, Warn(check, "start a relay, which takes back what a dead one held; where relays run, see their logs for reclaim",
			"leases of relay %s that ended and whose messages no relay has taken back: %d, the oldest ended %s ago", e.Relay, e.Leases, e.Ended))
	}
	if findings == nil {
		return []Finding{Fine(check, "no message is under the lease of a dead relay")}
	}
	return findings
}

// reclaimed is how soon after its end a lease is taken back while a relay runs: it watches for the lease's length, and a
// minute is long enough for all but the longest.
const reclaimed = time.Minute

// Written is how often rows of outbox were inserted, changed and deleted since the server's statistics began.
type Written struct {
	Empty                      bool // there is no row now
	Inserted, Updated, Deleted int64
}

// FoundWritten tells of an application that deletes what it inserts, as those do that were written for a reader of the log:
// no relay ever sees such a message. Every message that a relay took was updated.
func FoundWritten(w Written) Finding {
	const check = "messages"
	if w.Empty && w.Deleted > 0 && w.Updated == 0 {
		return Warn(check, "let the application only insert; outboxd deletes what is done, after its retention",
			"the table is empty: %d messages were inserted, %d deleted, and none was ever claimed, so the application deletes what it inserts, and no relay sees it", w.Inserted, w.Deleted)
	}
	return Fine(check, "INSERTs since the server began to count: %d, DELETEs: %d", w.Inserted, w.Deleted)
}
