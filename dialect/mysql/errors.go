package mysql

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/outboxd/outboxd/dialect"
)

// Codes that the statements of a Store look for.
const (
	lockWaitTimeout = 1205
	deadlockFound   = 1213
	duplicateEntry  = 1062
	noSuchTable     = 1146
	noSuchDatabase  = 1049
)

// wrongBinlog is the mend of a server on which nothing can be written.
const wrongBinlog = "the server's binlog_format is STATEMENT, which cannot hold what outboxd writes: SET GLOBAL binlog_format = 'ROW', and in the server's configuration"

// meaning is what some codes have in common.
type meaning struct {
	class dialect.Class
	words string
	codes []uint16
}

// meanings has the codes of both servers: below 1900 they share them, from 1900 to 1999 and from 4000 on they are
// MariaDB's, but for 4031; from 3000 to 3999 MySQL's. MySQL Error Reference, "Server Error Message Reference"; MariaDB
// documentation, "MariaDB Error Codes".
func meanings() []meaning {
	return []meaning{
		{dialect.Locked, "another session holds a lock", []uint16{lockWaitTimeout, 3572}},
		{dialect.Deadlock, "two sessions waited for each other", []uint16{deadlockFound, 1614}},
		{dialect.Conflict, "another transaction came between", []uint16{1020, 3101}},
		{dialect.Cancelled, "the statement took too long or was cancelled", []uint16{1317, 1969, 3024}},
		{dialect.Away, "the server is starting, stopping or ended the session", []uint16{
			1047, 1053, 1077, 1078, 1079, 1080, 1152, 1184, 1927, 1928, 3032, 3168, 3169, 4031,
		}},
		{dialect.Away, "the connection broke", []uint16{1042, 1043, 1158, 1159, 1160, 1161}},
		{dialect.Full, "the server has no connection left: raise max_connections, or what the user's account is limited to", []uint16{1040, 1135, 1203, 1226}},
		{dialect.Full, "the server has no memory, disk or room left", []uint16{1021, 1037, 1038, 1041, 1114, 1206, 1637}},
		{dialect.ReadOnly, "the database is read-only: name the primary server in the URL", []uint16{1036, 1290, 1792, 1836, 1874}},
		{dialect.Login, "the server refuses this user, password or host: check the database URL and the user's account", []uint16{
			1045, 1129, 1130, 1251, 1524, 1698, 1820, 1862, 3118, 3955, 4151,
		}},
		{dialect.Login, "the user may not use this database: grant it one of the roles of roles.sql, and SET DEFAULT ROLE", []uint16{1044}},
		{dialect.Login, "the server wants TLS: say sslmode=verify-full in the database URL", []uint16{3159}},
		{dialect.Login, "there is no database of this name: check the database URL", []uint16{noSuchDatabase}},
		{dialect.Rights, "the user may not do this: grant it the role that roles.sql makes, as its default role", []uint16{1142, 1143, 1227, 1370}},
		{dialect.Missing, "a table, column or index of outboxd is missing: run outboxd migrate up", []uint16{1051, 1054, noSuchTable, 1176, 1305}},
		{dialect.Duplicate, "the key exists already", []uint16{duplicateEntry, 1586}},
		{dialect.Refused, "a constraint of the table refuses the row", []uint16{1048, 1216, 1364, 1452, 1906, 3105, 3819, 4025}},
		{dialect.Refused, "the statement is larger than the server takes: raise max_allowed_packet", []uint16{1153, 1301}},
		{dialect.Other, wrongBinlog, []uint16{1665}},
		{dialect.Unreadable, "a value cannot be converted", []uint16{
			1264, 1265, 1292, 1366, 1367, 1406, 1411, 1525, 1690, 3140, 3141, 3156, 4037, 4038,
		}},
	}
}

// fold gives the class and the words of a server's code.
func fold(code uint16) (dialect.Class, string) {
	for _, m := range meanings() {
		if slices.Contains(m.codes, code) {
			return m.class, m.words
		}
	}
	return dialect.Other, "the database refuses the statement"
}

// errReadOnly is of a connection whose server takes no writes.
var errReadOnly = errors.New("the server is read-only")

// wrap puts a fault of the named statement into our words.
func wrap(query string, err error) error { return dialect.Wrap(query, err, fault) }

// fault reads what the server or the driver says by code.
func fault(err error) (dialect.Fault, bool) {
	if code := errorCode(err); code != 0 {
		class, words := fold(code)
		return dialect.Fault{Code: fmt.Sprintf("error %d", code), Class: class, Words: words}, true
	}
	if silent, ok := errors.AsType[*silentError](err); ok {
		return dialect.Fault{Class: dialect.Away, Words: "what listens at " + silent.address +
			" does not greet as MySQL does: it hangs, or is another service: check host and port of the database URL"}, true
	}
	switch {
	case errors.Is(err, errReadOnly):
		return dialect.Fault{Class: dialect.ReadOnly, Words: "the server is read-only: name the primary server in the URL"}, true
	case errors.Is(err, mysql.ErrNoTLS):
		return dialect.Fault{Class: dialect.Login, Words: "the server has no TLS: enable it, or say sslmode=disable in the database URL"}, true
	case errors.Is(err, mysql.ErrUnknownPlugin), errors.Is(err, mysql.ErrCleartextPassword), errors.Is(err, mysql.ErrOldPassword),
		errors.Is(err, mysql.ErrNativePassword), errors.Is(err, mysql.ErrOldProtocol):
		return dialect.Fault{Class: dialect.Login, Words: "the server wants a way to log in that outboxd does not know: give the user caching_sha2_password, mysql_native_password or ed25519"}, true
	case errors.Is(err, mysql.ErrPktTooLarge):
		return dialect.Fault{Class: dialect.Refused, Words: "the statement is larger than the server takes: raise max_allowed_packet"}, true
	}
	return dialect.Fault{}, false
}

// errorCode gives the server's code of a fault; 0 where no server answered.
func errorCode(err error) uint16 {
	if server, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return server.Number
	}
	return 0
}
