package relaytest

import (
	"fmt"
	"sync"

	"github.com/outboxd/outboxd/relay"
)

func instanceCases() []storeCase {
	return []storeCase{
		{"is none as long as no relay names one", instanceNone},
		{"is the name that a relay gave first", instanceFirst},
		{"is one where many relays name one at once", instanceAtOnce},
	}
}

// instanceOf asks whose the outbox is.
func (s *suite) instanceOf(store relay.Database, name string) string {
	s.Helper()
	of, err := store.Instance(s.Context(), name)
	s.must("Instance", err)
	return of
}

func instanceNone(s *suite) {
	for range 2 {
		if of := s.instanceOf(s.a, ""); of != "" {
			s.Fatalf("the outbox belongs to %q, want none", of)
		}
	}
}

func instanceFirst(s *suite) {
	const first = `shop-production "1" é`
	b := s.Store("b")
	for _, name := range []string{first, "shop-staging", "", first} {
		if of := s.instanceOf(b, name); of != first {
			s.Fatalf("asked as %q, the outbox belongs to %q, want %q", name, of, first)
		}
		b = s.a
	}
}

func instanceAtOnce(s *suite) {
	const relays = 4
	var all [relays]string
	var asking sync.WaitGroup
	for i := range relays {
		store := s.Store(fmt.Sprint("r", i))
		asking.Go(func() { all[i], _ = store.Instance(s.Context(), fmt.Sprint("shop", i)) })
	}
	asking.Wait()
	for _, of := range all {
		if of == "" || of != all[0] {
			s.Fatalf("the relays were told %q, want the same name", all)
		}
	}
}
