package dialecttest

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// Fault is what a statement ended in, and what people are told of it.
type Fault struct {
	Err   error
	Class dialect.Class
	Says  string
}

// TestWrap holds an engine's words for errors, of the query claim, to their faults and to those that all engines have. broken
// is what it says of a lost connection.
func TestWrap(t *testing.T, wrap func(query string, err error) error, broken string, faults ...Fault) {
	for _, f := range slices.Concat(faults, []Fault{
		{context.DeadlineExceeded, dialect.Cancelled, "claim: no answer in time"},
		{fmt.Errorf("begin: %w", context.Canceled), dialect.Cancelled, "claim: no answer in time"},
		{driver.ErrBadConn, dialect.Away, broken},
		{io.ErrUnexpectedEOF, dialect.Away, broken},
		{errors.New("QzQx"), dialect.Away, broken},
		{dialect.Refuse(dialect.ErrRights, "no rights"), dialect.Rights, "no rights"},
		{dialect.Refuse(dialect.ErrShape, "no shape"), "", "no shape"},
	}) {
		err := wrap("claim", f.Err)
		if dialect.ClassOf(err) != f.Class || err.Error() != f.Says || !errors.Is(err, f.Err) {
			t.Errorf("%v: %v, class %q, want %q, class %q", f.Err, err, dialect.ClassOf(err), f.Says, f.Class)
		}
		if again := wrap("settle", err); again.Error() != f.Says {
			t.Errorf("wrapped again it says %v", again)
		}
	}
	if wrap("claim", nil) != nil {
		t.Error("nil becomes an error")
	}
}
