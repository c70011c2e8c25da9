package mysql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
)

// Rows that cannot be are refused where they are written, by whomever and in any sql_mode: without a strict one the servers
// cut texts, and make an empty text or 0 of a NULL in a statement of several rows.
func TestOddRows(t *testing.T) {
	t.Parallel()
	const blank = "CONCAT('paid', CHAR(%d))"
	cases := []struct{ name, query string }{
		{"type empty", "INSERT INTO outbox (type) VALUES ('')"},
		{"type padded", "INSERT INTO outbox (type) VALUES ('paid ')"},
		{"type behind a blank", "INSERT INTO outbox (type) VALUES (' paid')"},
		{"type and a tab", "INSERT INTO outbox (type) VALUES (" + fmt.Sprintf(blank, 9) + ")"},
		{"type and a line feed", "INSERT INTO outbox (type) VALUES (" + fmt.Sprintf(blank, 10) + ")"},
		{"type and a vertical tab", "INSERT INTO outbox (type) VALUES (" + fmt.Sprintf(blank, 11) + ")"},
		{"type and a form feed", "INSERT INTO outbox (type) VALUES (" + fmt.Sprintf(blank, 12) + ")"},
		{"type and a carriage return", "INSERT INTO outbox (type) VALUES (" + fmt.Sprintf(blank, 13) + ")"},
		{"type NULL", "INSERT INTO outbox (type) VALUES (NULL)"},
		{"types NULL", "INSERT INTO outbox (type) VALUES (NULL), (NULL)"},
		{"no type", "INSERT INTO outbox (aggregatetype) VALUES ('orders')"},
		{"type too long", "INSERT INTO outbox (type) VALUES (REPEAT('x', 256))"},
		{"type far too long", "INSERT INTO outbox (type) VALUES (REPEAT('ä', 5000))"},
		{"type that becomes short enough by blanks", "INSERT INTO outbox (type) VALUES (CONCAT('x', REPEAT(' ', 300)))"},
		{"aggregatetype padded", "INSERT INTO outbox (aggregatetype, type) VALUES ('orders   ', 'paid')"},
		{"aggregatetype empty", "INSERT INTO outbox (aggregatetype, type) VALUES ('', 'paid')"},
		{"aggregatetype too long", "INSERT INTO outbox (aggregatetype, type) VALUES (REPEAT('x', 256), 'paid')"},
		{"aggregateid too long", "INSERT INTO outbox (aggregateid, type) VALUES (REPEAT('x', 256), 'paid')"},
		{"traceparent too long", "INSERT INTO outbox (traceparent, type) VALUES (REPEAT('x', 256), 'paid')"},
		{"content_type too long", "INSERT INTO outbox (content_type, type) VALUES (REPEAT('x', 256), 'paid')"},
		{"content_types NULL", "INSERT INTO outbox (type, content_type) VALUES ('a', NULL), ('a', NULL)"},
		{"id empty", "INSERT INTO outbox (id, type) VALUES ('', 'a')"},
		{"id too long", "INSERT INTO outbox (id, type) VALUES (REPEAT('x', 37), 'a')"},
		{"id far too long", "INSERT INTO outbox (id, type) VALUES (REPEAT('x', 400), 'a')"},
		{"id with a dot", "INSERT INTO outbox (id, type) VALUES ('a.b', 'a')"},
		{"id with a blank", "INSERT INTO outbox (id, type) VALUES ('a b', 'a')"},
		{"id and a blank", "INSERT INTO outbox (id, type) VALUES ('a ', 'a')"},
		{"id and a line feed", "INSERT INTO outbox (id, type) VALUES (CONCAT('a', CHAR(10)), 'a')"},
		{"id of other letters", "INSERT INTO outbox (id, type) VALUES ('é', 'a')"},
		{"ids NULL", "INSERT INTO outbox (id, type) VALUES (NULL, 'a'), (NULL, 'a')"},
		{"headers a list", "INSERT INTO outbox (type, headers) VALUES ('a', '[]')"},
		{"headers a string", `INSERT INTO outbox (type, headers) VALUES ('a', '"{}"')`},
		{"headers no JSON", "INSERT INTO outbox (type, headers) VALUES ('a', '{a:1}')"},
		{"headers cut off", `INSERT INTO outbox (type, headers) VALUES ('a', '{"a":"b"')`},
		{"headers and more", `INSERT INTO outbox (type, headers) VALUES ('a', '{"a":"b"} x')`},
		{"headers empty", "INSERT INTO outbox (type, headers) VALUES ('a', '')"},
		{"headers NULL", "INSERT INTO outbox (type, headers) VALUES ('a', NULL), ('a', NULL)"},
		{"schema_version NULL", "INSERT INTO outbox (type, schema_version) VALUES ('a', NULL), ('a', NULL)"},
		{"schema_version no number", "INSERT INTO outbox (type, schema_version) VALUES ('a', 'x')"},
		{"due_at NULL", "INSERT INTO outbox (type, due_at) VALUES ('a', NULL)"},
		{"due_ats NULL", "INSERT INTO outbox (type, due_at) VALUES ('a', NULL), ('a', NULL)"},
		{"due_at no time", "INSERT INTO outbox (type, due_at) VALUES ('a', 'soon')"},
		{"due_at no day", "INSERT INTO outbox (type, due_at) VALUES ('a', '2026-02-30 00:00:00')"},
		{"due_at the sentinel", "INSERT INTO outbox (type, due_at) VALUES ('a', '9999-12-31')"},
		{"due_at beyond it", "INSERT INTO outbox (type, due_at) VALUES ('a', '9999-12-31 00:00:01')"},
		{"expires_at no time", "INSERT INTO outbox (type, expires_at) VALUES ('a', 'never')"},
		{"a fifth state", "UPDATE outbox SET state = 'dead', due_at = '9999-12-31'"},
		{"a state and more", "UPDATE outbox SET state = 'in_flight_', due_at = '9999-12-31 00:00:00.1'"},
		{"in flight and due", "UPDATE outbox SET state = 'in_flight'"},
		{"pending and not due", "UPDATE outbox SET due_at = '9999-12-31'"},
		{"due_at to NULL", "UPDATE outbox SET due_at = NULL"},
		{"done without a time", "UPDATE outbox SET state = 'done', due_at = '9999-12-31'"},
		{"done_at and not done", "UPDATE outbox SET done_at = UTC_TIMESTAMP(6)"},
		{"failed without a reason", "UPDATE outbox SET state = 'failed', failed_at = UTC_TIMESTAMP(6), due_at = '9999-12-31'"},
		{"failed without a time", "UPDATE outbox SET state = 'failed', reason = 'expired', due_at = '9999-12-31'"},
		{"an eighth reason", "UPDATE outbox SET state = 'failed', failed_at = UTC_TIMESTAMP(6), reason = 'other', due_at = '9999-12-31'"},
		{"a reason and not failed", "UPDATE outbox SET reason = 'expired'"},
		{"resolved and not failed", "UPDATE outbox SET resolved_at = UTC_TIMESTAMP(6)"},
		{"attempts below 0", "UPDATE outbox SET attempts = -1"},
		{"lapses below 0", "UPDATE outbox SET lapses = -1"},
		{"replays below 0", "UPDATE outbox SET replays = -1"},
		{"a lease longer than a day", "INSERT INTO outbox_lease VALUES (1, 'a', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 86400000001, '[]')"},
		{"a lease of no list", "INSERT INTO outbox_lease VALUES (1, 'a', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 1, '[1,')"},
		{"an operation on nothing", "INSERT INTO outbox_operation (op, filter) VALUES ('cancel', '')"},
		{"an operation that nobody knows", "INSERT INTO outbox_operation (op, filter) VALUES ('other', '{}')"},
		{"an operation of nobody", "INSERT INTO outbox_operation (op, filter, actor) VALUES ('cancel', '{}', NULL), ('cancel', '{}', NULL)"},
		{"a correction of an id too long", "INSERT INTO outbox_correction (operation_id, id) VALUES ('a', REPEAT('x', 50))"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.exec(t, "INSERT INTO outbox (type) VALUES ('row')")
		for _, mode := range []string{"", "STRICT_ALL_TABLES", "ANSI,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH"} {
			session := d.open(t, "sql_mode='"+mode+"'")
			for _, c := range cases {
				if _, err := session.Exec(c.query); errorCode(err) == 0 || errorCode(err) == 1064 {
					t.Errorf("sql_mode %q: %s: %v, want the server's refusal", mode, c.name, err)
				}
			}
		}
	})
}

// What may be may be in every session, and comes out of it the same.
func TestRowsOfAnySession(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		isolation := "transaction_isolation='SERIALIZABLE'"
		if s.name == "MariaDB" {
			isolation = "tx_isolation='SERIALIZABLE'"
		}
		for _, setting := range []string{
			"sql_mode=''", "sql_mode='ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'", "time_zone='+08:00'", "time_zone='SYSTEM'",
			"autocommit=0", isolation, "character_set_results='latin1'", "collation_connection='utf8mb4_general_ci'", "big_tables=1",
		} {
			session := d.open(t, setting)
			err := inTransaction(session, func(tx *sqlx.Tx) error {
				_, err := tx.Exec(`INSERT INTO outbox (aggregatetype, aggregateid, type, headers, payload) VALUES ('Größe', '7 ', 'paid', ' {"a":"b"}', X'00e9ff27')`)
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", setting, err)
				continue
			}
			var right bool
			const look = `SELECT aggregatetype = 'Größe' AND aggregateid = '7 ' AND routing_key = 'Größe' AND headers = ' {"a":"b"}' AND payload = X'00e9ff27'
				AND state = 'pending' AND lease_id = 0 AND attempts = 0 AND result = REPEAT(' ', 64) AND content_type = 'application/json' AND schema_version = 1
				AND ABS(TIMESTAMPDIFF(SECOND, due_at, UTC_TIMESTAMP(6))) < 60 AND ABS(TIMESTAMPDIFF(SECOND, created_at, UTC_TIMESTAMP(6))) < 60
				AND done_at = '1000-01-01' AND failed_at = '1000-01-01' AND unknown_since = '1000-01-01' AND expires_at IS NULL
				AND id REGEXP '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$'
				FROM outbox ORDER BY seq DESC LIMIT 1`
			if err := d.db.Get(&right, look); err != nil || !right {
				t.Errorf("%s: the row is not what was written, %v", setting, err)
			}
		}
	})
}

// A latin1 session's texts are converted, and its payload's bytes are kept.
func TestLatin1Session(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		for _, setting := range []string{"sql_mode=''", "sql_mode='STRICT_ALL_TABLES'"} {
			conn, err := d.open(t, setting).Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []string{"SET NAMES latin1", "INSERT INTO outbox (type, headers, payload) VALUES ('Gr\xf6\xdfe', '{\"a\":\"\xe9\"}', '\xe9\x80')"} {
				if _, err := conn.ExecContext(t.Context(), q); err != nil {
					t.Errorf("%s: %v", setting, err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			var right bool
			if err := d.db.Get(&right, `SELECT type = 'Größe' AND headers = '{"a":"é"}' AND payload = X'e980' FROM outbox ORDER BY seq DESC LIMIT 1`); err != nil || !right {
				t.Errorf("%s: the row is not what was written, %v", setting, err)
			}
		}
	})
}

// Texts compare byte by byte, as in Go and in Kafka: case, accents and blanks count.
func TestTextsCompareByBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.exec(t, "INSERT INTO outbox (id, type, aggregateid) VALUES ('a', 'paid', '7'), ('A', 'Paid', '7 '), ('b', 'päid', '07')")
		for condition, want := range map[string]int{
			"routing_key = 'paid'": 1, "routing_key = 'PAID'": 0, "aggregateid = '7'": 1, "aggregateid = '7  '": 0, "id = 'a'": 1, "id = 'B'": 0,
		} {
			var n int
			if err := d.db.Get(&n, "SELECT COUNT(*) FROM outbox WHERE "+condition); err != nil || n != want {
				t.Errorf("%s: %d rows, %v, want %d", condition, n, err, want)
			}
		}
	})
}

// The database's ids follow the clock, whichever session made them and however long the server has had the table open; they
// are version 7 of variant 10, and differ.
func TestIDsOfTheDatabase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		for _, setting := range []string{"time_zone='+08:00'", "time_zone='-11:00'", "character_set_connection='latin1'", "character_set_connection='utf8mb3'"} {
			session := d.open(t, setting)
			for range 2 {
				if _, err := session.Exec("INSERT INTO outbox (type) VALUES ('a')"); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wrong int
		const late = `SELECT COUNT(*) FROM outbox
			WHERE CONV(REPLACE(LEFT(id, 13), '-', ''), 16, 10) <> TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) DIV 1000`
		if err := d.db.Get(&wrong, late); err != nil || wrong != 0 {
			t.Errorf("%d ids are not of the millisecond in which they were made, %v", wrong, err)
		}
		d.many(t, 10000, "type", "'a'")
		var n, different, ordered int
		row := d.db.QueryRow(`SELECT COUNT(*), COUNT(DISTINCT id), (SELECT COUNT(*) FROM outbox a JOIN outbox b ON b.seq = a.seq + 1 WHERE LEFT(a.id, 13) > LEFT(b.id, 13)) FROM outbox`)
		if err := row.Scan(&n, &different, &ordered); err != nil || n != 10008 || different != n || ordered != 0 {
			t.Errorf("of %d ids %d are different, %d out of order, %v", n, different, ordered, err)
		}
	})
}

// Where a session logs statements, the servers say that an id made by them is not the same on a replica; outboxd refuses
// such a server, but an application's INSERT fails in none.
func TestInsertUnderAnyBinlogFormat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		for _, format := range []string{"STATEMENT", "MIXED", "ROW"} {
			session := d.open(t, "binlog_format='"+format+"'")
			if _, err := session.Exec("INSERT INTO outbox (type) VALUES (?)", strings.ToLower(format)); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
	})
}
