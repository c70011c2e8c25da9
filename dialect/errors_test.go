package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/lib/pq"
)

func TestFold(t *testing.T) {
	t.Parallel()
	cases := map[string]Class{
		"40P01": Deadlock, "55P03": Locked, "40001": Conflict, "57014": Cancelled, "57P01": Away, "57P02": Away, "57P03": Away,
		"53300": Full, "53100": Full, "53200": Full, "25006": ReadOnly, "28P01": Login, "28000": Login, "3D000": Login, "42704": Login,
		"42501": Rights, "42P01": Missing, "42703": Missing, "42883": Missing, "3F000": Missing, "23505": Duplicate, "23514": Refused,
		"23502": Refused, "22P02": Unreadable, "22021": Unreadable, "22P05": Unreadable, "08006": Away, "26000": Pooler, "42P05": Pooler, "08P01": Pooler,
		"42601": Other, "XX000": Other, "": Other, "4": Other,
	}
	for code, want := range cases {
		if got, words := fold(code); got != want || words == "" {
			t.Errorf("SQLSTATE %q: %s, %q, want %s", code, got, words, want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	const secret = "QzQx"
	server := &pq.Error{Code: "55P03", Message: secret, Detail: secret, Hint: secret}
	cases := []struct {
		err  error
		want Class
		says string
	}{
		{server, Locked, "claim: another session holds a lock (SQLSTATE 55P03)"},
		{fmt.Errorf("%s: %w", secret, server), Locked, "claim: another session holds a lock (SQLSTATE 55P03)"},
		{errors.Join(server, context.Canceled), Locked, "claim: another session holds a lock (SQLSTATE 55P03)"},
		{context.DeadlineExceeded, Cancelled, "claim: no answer in time"},
		{driver.ErrBadConn, Away, "claim: the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"},
		{io.ErrUnexpectedEOF, Away, "claim: the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"},
		{&net.OpError{Op: "read", Err: errors.New(secret)}, Away, "claim: the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"},
		{&net.DNSError{Err: secret, Name: "db.example"}, Away, "claim: the host of the database URL has no address"},
		{refuse(ErrRights, "no rights"), Rights, "no rights"},
		{refuse(ErrShape, "no shape"), "", "no shape"},
	}
	for _, c := range cases {
		err := wrap("claim", c.err)
		if ClassOf(err) != c.want || err.Error() != c.says || !errors.Is(err, c.err) {
			t.Errorf("%v: %v, class %q, want %q, class %q", c.err, err, ClassOf(err), c.says, c.want)
		}
		if again := wrap("settle", err); again.Error() != c.says {
			t.Errorf("wrapped again it says %v", again)
		}
	}
	if wrap("claim", nil) != nil {
		t.Error("nil becomes an error")
	}
}
