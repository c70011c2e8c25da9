package relaytest

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
)

// SQLOperations is the part of a Backend that is about operations and presence, in the SQL that every database understands: as
// operators write it.
type SQLOperations struct {
	T    testing.TB
	DB   *sql.DB
	Bind func(query string) string // makes of question marks the placeholders of the database; nil: they are
}

func (s SQLOperations) bind(query string) string {
	if s.Bind == nil {
		return query
	}
	return s.Bind(query)
}

func (s SQLOperations) exec(query string, args ...any) {
	s.T.Helper()
	if _, err := s.DB.Exec(s.bind(query), args...); err != nil {
		s.T.Fatalf("%v, in: %s", err, query)
	}
}

// Order implements Preparer.
func (s SQLOperations) Order(o Ordered) string {
	s.T.Helper()
	if o.ID == "" {
		var random [16]byte
		_, _ = rand.Read(random[:])
		h := hex.EncodeToString(random[:])
		o.ID = h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:]
	}
	note := sql.NullString{String: o.Note, Valid: o.Note != ""}
	progress := sql.NullString{String: o.Progress, Valid: o.Progress != ""}
	s.exec("INSERT INTO outbox_operation (id, op, filter, note, dry_run, progress, actor) VALUES (?, ?, ?, ?, ?, ?, 'test')",
		o.ID, o.Op, o.Filter, note, o.DryRun, progress)
	return o.ID
}

// Correct implements Preparer. The payloads are texts.
func (s SQLOperations) Correct(operation, message string, payload, old []byte) {
	s.T.Helper()
	s.exec("INSERT INTO outbox_correction (operation_id, id, payload, old_payload) VALUES (?, ?, ?, ?)",
		operation, message, string(payload), sql.NullString{String: string(old), Valid: old != nil})
}

// Operation implements Looker.
func (s SQLOperations) Operation(id string) OperationRow {
	s.T.Helper()
	var o OperationRow
	var detail string
	err := s.DB.QueryRow(s.bind(`SELECT op, filter, applied_at IS NOT NULL, coalesce(affected, 0), coalesce(detail, ''), coalesce(progress, ''), coalesce(applier, '')
		FROM outbox_operation WHERE id = ?`), id).Scan(&o.Op, &o.Filter, &o.Applied, &o.Affected, &detail, &o.Progress, &o.Applier)
	if errors.Is(err, sql.ErrNoRows) {
		return OperationRow{}
	}
	if err == nil && detail != "" {
		err = json.Unmarshal([]byte(detail), &o.Detail)
	}
	if err != nil {
		s.T.Fatalf("operation %s: %v", id, err)
	}
	return o
}

// Payload implements Looker.
func (s SQLOperations) Payload(message string) []byte {
	s.T.Helper()
	return s.bytes("SELECT payload FROM outbox WHERE id = ?", message)
}

// OldPayload implements Looker.
func (s SQLOperations) OldPayload(operation, message string) []byte {
	s.T.Helper()
	return s.bytes("SELECT old_payload FROM outbox_correction WHERE operation_id = ? AND id = ?", operation, message)
}

func (s SQLOperations) bytes(query string, args ...any) (value []byte) {
	s.T.Helper()
	if err := s.DB.QueryRow(s.bind(query), args...).Scan(&value); err != nil && !errors.Is(err, sql.ErrNoRows) {
		s.T.Fatalf("%v, in: %s", err, query)
	}
	return value
}
