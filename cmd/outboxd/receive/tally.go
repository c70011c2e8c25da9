package receive

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Verdict is what became of a request.
type Verdict string

// The verdicts. All but Effect left everything as it was.
const (
	Effect       Verdict = "effect"
	Repeat       Verdict = "repeat"        // answered as the first time
	Running      Verdict = "running"       // the first is still at work: 409
	OtherBody    Verdict = "other-body"    // the key is another request's: 422
	NoKey        Verdict = "no-key"        // 400
	BadToken     Verdict = "bad-token"     // 401
	BadSignature Verdict = "bad-signature" // 401
	Unreadable   Verdict = "unreadable"    // 400, or 413
	NoEffect     Verdict = "no-effect"     // it was asked to fail
)

// Tally counts the requests.
type Tally struct {
	Requests      int
	Effects       int
	Repeats       int // dropped
	Failed        int // on demand, without an effect
	Refused       int // for their own sake
	BadSignatures int // of them
	Doubled       int // keys with more than one effect
	Forgotten     int // keys that there was no room for: a repeat of them would be an effect
}

func (t Tally) String() string {
	return fmt.Sprintf("requests %d · effects %d · repeats dropped %d · failed on demand %d · refused %d · bad signatures %d · doubled %d",
		t.Requests, t.Effects, t.Repeats, t.Failed, t.Refused, t.BadSignatures, t.Doubled)
}

// Tally is what was counted so far.
func (r *Receiver) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	t := r.tally
	t.Doubled, t.Forgotten = r.keys.doubled, r.keys.forgotten
	return t
}

// Did tells whether a key had an effect.
func (r *Receiver) Did(key string) bool { return r.keys.did(key) }

// visit is a request in the log.
type visit struct {
	at             time.Time
	key            string
	kind, attempt  string // as its headers say
	body           []byte
	verdict        Verdict
	answer, reason string
}

func newVisit(req *http.Request) visit {
	kind := req.Header.Get("Outbox-Type")
	if kind == "" {
		kind = req.Header.Get("ce-type")
	}
	return visit{at: time.Now(), kind: printable(kind, 100), attempt: printable(req.Header.Get("Outbox-Attempt"), 10)}
}

// refuse makes the answer to a request that is not worked on for its own sake.
func (v *visit) refuse(verdict Verdict, status int, reason string) answer {
	v.verdict, v.reason = verdict, reason
	return answer{status: status, text: reason + "\n"}
}

// note counts a request, and prints its line.
func (r *Receiver) note(v visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.tally
	t.Requests++
	switch v.verdict {
	case Effect:
		t.Effects++
	case Repeat:
		t.Repeats++
	case NoEffect:
		t.Failed++
	case BadSignature:
		t.BadSignatures++
		t.Refused++
	default:
		t.Refused++
	}
	line := fmt.Sprintf("%s  %-13s  %-5s  %-36s  %s  attempt %s",
		v.at.Format("15:04:05.000"), v.verdict, v.answer, orDash(printable(v.key, 80)), orDash(v.kind), orDash(v.attempt))
	if v.reason != "" {
		line += "  " + v.reason
	}
	if r.options.Bodies {
		line += "  " + strconv.Quote(string(v.body))
	}
	fmt.Fprintln(r.options.Out, line)
	if v.verdict == Effect && t.Effects == r.options.Count {
		r.options.Enough()
	}
}

// pageKeys is how many keys the page shows.
const pageKeys = 1000

// page shows the tally and the newest keys.
func (r *Receiver) page(w http.ResponseWriter) {
	fmt.Fprintf(w, "%s\n\n", r.Tally())
	k := r.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tTYPE\tEFFECTS\tREPEATS\tANSWER\tSEEN")
	for i := len(k.order) - 1; i >= max(0, len(k.order)-pageKeys); i-- {
		e := k.order[i]
		given := e.answer.words()
		if e.running {
			given = "running"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", printable(e.key, 80), orDash(e.kind), e.effects, e.repeats, given, e.at.Format("15:04:05.000"))
	}
	_ = table.Flush()
	if more := len(k.order) - pageKeys; more > 0 {
		fmt.Fprintf(w, "and %d older ones\n", more)
	}
}

// printable is text that moves no cursor, of at most n characters.
func printable(text string, n int) string {
	clean := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
	if len(clean) > n {
		return clean[:n] + "…"
	}
	return clean
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
