package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// oldRows are so many messages that may go.
type oldRows struct {
	left int
	gone func(n int)
}

func (o *oldRows) Remove(_ context.Context, r relay.Removal) (relay.Removed, error) {
	if r.What != relay.KeptMessages {
		return relay.Removed{}, nil
	}
	n := min(o.left, r.Most)
	o.left -= n
	o.gone(n)
	if o.left == 0 {
		return relay.Removed{Gone: n}, nil
	}
	return relay.Removed{Gone: n, Next: "next"}, nil
}

// TestPurgeRate: no more than the rate goes within any second, also where that is less than a page.
func TestPurgeRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.5, 10, 2500} {
		synctest.Test(t, func(t *testing.T) {
			total, began := 0, time.Now()
			rows := &oldRows{left: int(20 * rate), gone: func(n int) {
				if total += n; float64(total) > rate*time.Since(began).Seconds()+max(rate, 1) {
					t.Errorf("at a rate of %v: %d rows went within %s", rate, total, time.Since(began))
				}
			}}
			w := &purging{remover: rows, purge: purge{rate: rate}}
			if err := w.run(t.Context()); err != nil || w.total != int(20*rate) {
				t.Errorf("%d rows went: %v", w.total, err)
			}
		})
	}
}

// TestPurgeNothingKept: a time of 0 is no way to say the configuration's.
func TestPurgeNothingKept(t *testing.T) {
	t.Parallel()
	stderr := &safeBuffer{}
	p := &program{env: environment(), stdin: strings.NewReader(""), stdout: &safeBuffer{}, stderr: stderr}
	if code := p.run(t.Context(), []string{"purge", "--done-after", "0s"}); code != exitUsage || !strings.Contains(stderr.String(), "--done-after wants") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
