package dialect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// table is a Writer over messages in memory, some of which cause trouble.
type table struct {
	locked  map[string]bool   // held by another session
	cursed  map[string]bool   // a trigger refuses them
	narrow  bool              // it takes no emoji
	fates   map[string]Fate   // what Fates tells
	written map[string]string // the error text as it was written
	away    error
}

func (w *table) Write(_ context.Context, b Batch) (int64, error) {
	for _, r := range b {
		switch {
		case w.away != nil:
			return 0, w.away
		case w.narrow && strings.Contains(r.LastError, "🙈"):
			return 0, &Error{Fault: Fault{Class: Unreadable}}
		case w.locked[r.ID]:
			return 0, &Error{Fault: Fault{Class: Locked}}
		case w.cursed[r.ID]:
			return 0, &Error{Fault: Fault{Class: Refused}}
		}
	}
	for _, r := range b {
		w.written[r.ID] = r.LastError
	}
	return int64(len(b)), nil
}

func (w *table) WriteAround(ctx context.Context, b Batch) (int64, error) {
	free := slices.DeleteFunc(slices.Clone(b), func(r Settling) bool { return w.locked[r.ID] })
	return w.Write(ctx, free)
}

func (w *table) Fates(context.Context, Batch) (map[string]Fate, error) { return w.fates, nil }

// eight settlements, in another order than their ids.
func eight(t *testing.T) Batch {
	t.Helper()
	var all []relay.Settlement
	for i := 8; i > 0; i-- {
		claim := relay.Claim{ID: fmt.Sprint(i), Seq: int64(i), Lease: 7}
		all = append(all, relay.Decide(relay.Try{Claim: claim, Outcome: relay.Retry("http_5xx", "503 🙈"), Opened: true}))
	}
	b, err := NewBatch(all, func(r relay.Row) int64 { return r.Seq })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSettle(t *testing.T) {
	t.Parallel()
	away := &Error{Fault: Fault{Class: Away}}
	ours, lost := Fate{Lease: 7, InFlight: true}, Fate{Lease: 8, InFlight: true}
	cases := map[string]struct {
		table table
		text  string // as it is written
		left  map[string]relay.Why
		err   error
	}{
		"all":                   {table{}, "503 🙈", nil, nil},
		"none":                  {table{away: away}, "", nil, away},
		"a narrow column":       {table{narrow: true}, "503 ?", nil, nil},
		"a locked row":          {table{locked: map[string]bool{"3": true}, fates: map[string]Fate{"3": ours, "4": {Lease: 7}}}, "503 🙈", map[string]relay.Why{"3": relay.Locked}, nil},
		"a locked and lost row": {table{locked: map[string]bool{"3": true}, fates: map[string]Fate{"3": lost}}, "503 🙈", map[string]relay.Why{"3": relay.Lost}, nil},
		"a row that a trigger refuses, and the rest as it is": {table{cursed: map[string]bool{"5": true}}, "503 🙈", map[string]relay.Why{"5": relay.Refused}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.table.written = map[string]string{}
			// A Fate of every message that is written: ours, and no longer in flight.
			fates := map[string]Fate{}
			for _, r := range eight(t) {
				fates[r.ID] = Fate{Lease: 7}
			}
			maps.Copy(fates, c.table.fates)
			c.table.fates = fates
			back, err := Settle(t.Context(), &c.table, eight(t))
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			left := map[string]relay.Why{}
			for _, u := range back {
				left[u.Row().ID] = u.Why
				if (u.Why == relay.Refused) != (u.Err != nil) {
					t.Errorf("%s: why %d, error %v", u.Row().ID, u.Why, u.Err)
				}
			}
			if !maps.Equal(left, c.left) {
				t.Errorf("left are %v, want %v", left, c.left)
			}
			if c.err == nil && len(c.table.written)+len(left) != 8 {
				t.Errorf("%d were written and %d left", len(c.table.written), len(left))
			}
			for id, text := range c.table.written {
				if text != c.text {
					t.Errorf("%s has the text %q, want %q", id, text, c.text)
				}
			}
		})
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	b := eight(t)
	if !slices.IsSortedFunc(b, func(x, y Settling) int { return int(x.Seq - y.Seq) }) {
		t.Error("the batch is not in the order of seq")
	}
	twice := []relay.Settlement{b[0].Settlement, b[1].Settlement, b[0].Settlement}
	if _, err := NewBatch(twice, func(r relay.Row) int64 { return r.Seq }); err == nil {
		t.Error("a message may occur twice")
	}
	claim := relay.Claim{ID: "9", Seq: 9}
	long := relay.Outcome{Kind: relay.KindDone, Answer: "long"}
	mixed, err := NewBatch([]relay.Settlement{
		relay.Decide(relay.Try{Claim: claim, Outcome: relay.Done("0@1")}),
		relay.Decide(relay.Try{Claim: relay.Claim{ID: "8", Seq: 8}, Outcome: long}),
		relay.Release(relay.Claim{ID: "7", Seq: 7}),
		relay.Decide(relay.Try{Claim: relay.Claim{ID: "6", Seq: 6}, Outcome: relay.Done("0@1"), Policy: relay.Policy{Emit: relay.Emit{Type: "told"}}}),
	}, func(r relay.Row) int64 { return r.Seq })
	if err != nil {
		t.Fatal(err)
	}
	if done, told, rest := mixed.Split(); len(done) != 1 || done[0].ID != "9" || len(told) != 1 || told[0].ID != "6" || len(rest) != 2 {
		t.Errorf("split into %v, %v and %v", done, told, rest)
	}
}

// TestSinceGrows: a batch that waits for a lock, or for another one, knows all the same when its sends began.
func TestSinceGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := relay.Decide(relay.Try{Outcome: relay.Unknown("timeout", ""), Took: time.Second})
		b, err := NewBatch([]relay.Settlement{sent.Since(time.Minute)}, func(r relay.Row) int64 { return r.Seq })
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		if got := b.Plain()[0].SinceMicros(); got != 65_000_000 {
			t.Errorf("the send began %d µs ago, want 65 s", got)
		}
	})
}
