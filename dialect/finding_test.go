package dialect

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFoundError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err        error
		what, mend string
	}{
		{Refuse(ErrShape, "table x is missing: run outboxd migrate up"), "table x is missing", "run outboxd migrate up"},
		{&Error{Query: "claim", Fault: Fault{Code: "SQLSTATE 42501", Words: "the role may not do this: grant it"}}, "the role may not do this (SQLSTATE 42501)", "grant it"},
		{&Error{Query: "claim", Fault: Fault{Words: "no answer in time"}}, "no answer in time", ""},
		{errors.New("other"), "other", ""},
	} {
		if f := FoundError("x", c.err); f.Check != "x" || f.Verdict != VerdictFault || f.What != c.what || f.Mend != c.mend {
			t.Errorf("%v: %+v", c.err, f)
		}
	}
}

func TestFoundClock(t *testing.T) {
	t.Parallel()
	asked := time.Now()
	for _, c := range []struct {
		ahead, trip time.Duration
		says        string
	}{
		{0, 0, "agrees with this host's, to within 1ms"},
		{4 * time.Millisecond, 10 * time.Millisecond, "agrees with this host's, to within 10ms"},
		{-4 * time.Millisecond, 10 * time.Millisecond, "agrees"},
		{2 * time.Second, 10 * time.Millisecond, "2s ahead of"},
		{-time.Hour, 10 * time.Millisecond, "1h0m0s behind"},
	} {
		f := FoundClock(asked.Add(c.trip/2+c.ahead), asked, asked.Add(c.trip))
		if f.Verdict != VerdictOK || !strings.Contains(f.What, c.says) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

func TestFoundLeases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ended []EndedLease
		as    Verdict
	}{
		{nil, VerdictOK},
		{[]EndedLease{{"a", 3, Age(30 * time.Second)}}, VerdictOK}, // others watch it
		{[]EndedLease{{"a", 3, Age(time.Hour)}}, VerdictWarning},
	} {
		if f := FoundLeases(c.ended); len(f) != 1 || f[0].Verdict != c.as {
			t.Errorf("%+v: %+v", c.ended, f)
		}
	}
}

func TestFoundWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w  Written
		as Verdict
	}{
		{Written{Empty: true}, VerdictOK},
		{Written{Empty: true, Inserted: 5}, VerdictOK}, // rolled back
		{Written{Empty: true, Inserted: 5, Deleted: 5}, VerdictWarning},
		{Written{Empty: true, Inserted: 5, Updated: 10, Deleted: 5}, VerdictOK}, // sent, and purged
		{Written{Inserted: 5, Deleted: 4}, VerdictOK},
	} {
		if f := FoundWritten(c.w); f.Verdict != c.as {
			t.Errorf("%+v: %+v", c.w, f)
		}
	}
}
