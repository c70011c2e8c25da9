package relay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestEachKeyGetsItsTurn: with more routing keys than places, each key's message is sent soon, whichever comes when.
func TestEachKeyGetsItsTurn(t *testing.T) {
	for _, keys := range []int{2, 3, 6} {
		for _, dests := range []int{1, 2} {
			t.Run(fmt.Sprint(keys, " keys, ", dests, " destinations"), func(t *testing.T) {
				inWorld(t, func(w *world) {
					cfg := w.config("a", nil)
					cfg.Destinations, cfg.Routes = nil, nil
					var all []string
					for d := range dests {
						to := fmt.Sprint("d", d)
						cfg.Destinations = append(cfg.Destinations, relay.Destination{Name: to, Sink: &recorder{}, Width: 1})
						for k := range keys {
							key := fmt.Sprint(to, "k", k)
							cfg.Routes = append(cfg.Routes, relay.Route{Match: key, To: to})
							all = append(all, key)
						}
					}
					w.start(cfg)
					for _, key := range all {
						time.Sleep(time.Second)
						w.untilAll(200*time.Millisecond, w.insert(1, key), relay.Finished)
					}
				})
			})
		}
	}
}

// TestLockedSuspect: a message that lapsed twice and that somebody locks keeps the others of its kind waiting no longer than
// it takes to pass it over.
func TestLockedSuspect(t *testing.T) {
	inWorld(t, func(w *world) {
		ids := w.table.Insert(slices.Repeat([]relaytest.Seed{{Type: "x", Lapses: 2}}, 5)...)
		defer w.table.Lock(ids[0])()
		w.start(w.config("a", &recorder{}))
		w.untilAll(10*time.Second, ids[1:], relay.Finished)
	})
}
