package demo

import "testing"

// TestBalance holds that the check can fail, for each thing that can go wrong alone.
func TestBalance(t *testing.T) {
	t.Parallel()
	good := balance{Committed: 8, RolledBack: 2, Messages: 8, Done: 8, Sends: 12, Effects: 8, Dropped: 2}
	if err := good.holds(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*balance){
		"an order lost, another charged twice": func(b *balance) { b.Lost, b.Doubles = 1, 1 },
		"a charge without an order":            func(b *balance) { b.Ghosts = 1 },
		"a charge too many":                    func(b *balance) { b.Effects = 9 },
		"a message of no order":                func(b *balance) { b.Messages, b.Done = 9, 9 },
		"a message not done":                   func(b *balance) { b.Done = 7 },
		"no order at all":                      func(b *balance) { *b = balance{} },
	} {
		b := good
		change(&b)
		if b.holds() == nil {
			t.Errorf("%s: it holds", name)
		}
	}
}
