package dialecttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// Shape is a change of the tables, and what the check of the start says to it.
type Shape struct {
	Name string
	SQL  string
	Says string // in the error, which is ErrShape; empty: it is accepted
}

// TestShapes holds an engine to what it says of changed tables. open makes an outbox with all tables.
func TestShapes(t *testing.T, shapes []Shape, open func(t *testing.T) Backend) {
	for _, s := range shapes {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			execute(t, b, s.SQL)
			err := b.Open().CheckShape(t.Context())
			refused := s.Says != ""
			if (err != nil) != refused || refused && (!errors.Is(err, dialect.ErrShape) || !strings.Contains(err.Error(), s.Says)) {
				t.Errorf("CheckShape: %v, want it refused with %q", err, s.Says)
			}
		})
	}
}
