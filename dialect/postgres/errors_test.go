package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestFold(t *testing.T) {
	t.Parallel()
	cases := map[string]dialect.Class{
		"40P01": dialect.Deadlock, "55P03": dialect.Locked, "40001": dialect.Conflict, "57014": dialect.Cancelled, "57P01": dialect.Away, "57P02": dialect.Away, "57P03": dialect.Away,
		"53300": dialect.Full, "53100": dialect.Full, "53200": dialect.Full, "25006": dialect.ReadOnly, "28P01": dialect.Login, "28000": dialect.Login, "3D000": dialect.Login, "42704": dialect.Login,
		"42501": dialect.Rights, "42P01": dialect.Missing, "42703": dialect.Missing, "42883": dialect.Missing, "3F000": dialect.Missing, "23505": dialect.Duplicate, "23514": dialect.Refused,
		"23502": dialect.Refused, "22P02": dialect.Unreadable, "22021": dialect.Unreadable, "22P05": dialect.Unreadable, "08006": dialect.Away, "26000": dialect.Pooler, "42P05": dialect.Pooler, "08P01": dialect.Pooler,
		"42601": dialect.Other, "XX000": dialect.Other, "": dialect.Other, "4": dialect.Other,
	}
	for code, want := range cases {
		if got, words := fold(code); got != want || words == "" {
			t.Errorf("SQLSTATE %q: %s, %q, want %s", code, got, words, want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	const (
		secret = "QzQx"
		locked = "claim: another session holds a lock (SQLSTATE 55P03)"
		broken = "claim: the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"
	)
	server := &pq.Error{Code: "55P03", Message: secret, Detail: secret, Hint: secret}
	dialecttest.TestWrap(t, wrap, broken,
		dialecttest.Fault{Err: server, Class: dialect.Locked, Says: locked},
		dialecttest.Fault{Err: fmt.Errorf("%s: %w", secret, server), Class: dialect.Locked, Says: locked},
		dialecttest.Fault{Err: errors.Join(server, context.Canceled), Class: dialect.Locked, Says: locked},
		dialecttest.Fault{Err: &net.OpError{Op: "read", Err: errors.New(secret)}, Class: dialect.Away, Says: broken},
		dialecttest.Fault{Err: &net.DNSError{Err: secret, Name: "db.example"}, Class: dialect.Away, Says: "claim: the host of the database URL has no address"},
	)
}
