package mysql

import (
	"fmt"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestFold(t *testing.T) {
	t.Parallel()
	cases := map[uint16]dialect.Class{
		1205: dialect.Locked, 3572: dialect.Locked, 1213: dialect.Deadlock, 1020: dialect.Conflict, 3101: dialect.Conflict,
		1317: dialect.Cancelled, 3024: dialect.Cancelled, 1969: dialect.Cancelled,
		1053: dialect.Away, 1077: dialect.Away, 1079: dialect.Away, 1158: dialect.Away, 1161: dialect.Away, 1927: dialect.Away, 4031: dialect.Away, 1047: dialect.Away,
		1040: dialect.Full, 1203: dialect.Full, 1226: dialect.Full, 1021: dialect.Full, 1114: dialect.Full,
		1290: dialect.ReadOnly, 1792: dialect.ReadOnly, 1836: dialect.ReadOnly,
		1044: dialect.Login, 1045: dialect.Login, 1049: dialect.Login, 1698: dialect.Login, 1130: dialect.Login, 3159: dialect.Login,
		1142: dialect.Rights, 1143: dialect.Rights, 1227: dialect.Rights, 1370: dialect.Rights,
		1146: dialect.Missing, 1054: dialect.Missing, 1176: dialect.Missing, 1062: dialect.Duplicate,
		3819: dialect.Refused, 4025: dialect.Refused, 1048: dialect.Refused, 1153: dialect.Refused,
		1366: dialect.Unreadable, 1292: dialect.Unreadable, 1406: dialect.Unreadable, 1264: dialect.Unreadable, 3141: dialect.Unreadable, 4038: dialect.Unreadable,
		1064: dialect.Other, 1665: dialect.Other, 9999: dialect.Other, 0: dialect.Other,
	}
	for code, want := range cases {
		if got, words := fold(code); got != want || words == "" {
			t.Errorf("error %d: %s, %q, want %s", code, got, words, want)
		}
	}
	seen := map[uint16]bool{}
	for _, m := range meanings() {
		for _, code := range m.codes {
			if seen[code] {
				t.Errorf("error %d has two meanings", code)
			}
			seen[code] = true
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	const (
		secret = "QzQx"
		locked = "claim: another session holds a lock (error 1205)"
		broken = "claim: the connection to the database broke off, or its server is a standby: check that the URL names a primary that runs"
	)
	server := &mysql.MySQLError{Number: 1205, Message: secret}
	dialecttest.TestWrap(t, wrap, broken,
		dialecttest.Fault{Err: server, Class: dialect.Locked, Says: locked},
		dialecttest.Fault{Err: fmt.Errorf("%s: %w", secret, server), Class: dialect.Locked, Says: locked},
		dialecttest.Fault{Err: &mysql.MySQLError{Number: 1064, Message: secret}, Class: dialect.Other, Says: "claim: the database refuses the statement (error 1064)"},
		dialecttest.Fault{Err: errReadOnly, Class: dialect.ReadOnly, Says: "claim: the server is read-only: name the primary server in the URL"},
		dialecttest.Fault{Err: mysql.ErrNoTLS, Class: dialect.Login, Says: "claim: the server has no TLS: enable it, or say sslmode=disable in the database URL"},
		dialecttest.Fault{Err: mysql.ErrUnknownPlugin, Class: dialect.Login, Says: "claim: the server wants a way to log in that outboxd does not know: give the user caching_sha2_password, mysql_native_password or ed25519"},
		dialecttest.Fault{Err: mysql.ErrPktTooLarge, Class: dialect.Refused, Says: "claim: the statement is larger than the server takes: raise max_allowed_packet"},
		dialecttest.Fault{Err: mysql.ErrInvalidConn, Class: dialect.Away, Says: broken},
		dialecttest.Fault{Err: mysql.ErrMalformPkt, Class: dialect.Away, Says: broken},
		dialecttest.Fault{Err: &net.DNSError{Err: secret, Name: "db.example"}, Class: dialect.Away, Says: "claim: the host of the database URL has no address"},
	)
}
