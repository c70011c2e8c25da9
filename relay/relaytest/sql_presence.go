package relaytest

import (
	"database/sql"
	"encoding/json"
	"sync"
)

// LockRelay implements Preparer.
func (s SQLOperations) LockRelay(relayName string) (unlock func()) {
	s.T.Helper()
	return s.lock("SELECT name FROM outbox_relay WHERE name = ? FOR UPDATE", relayName)
}

// LockBreakers implements Preparer.
func (s SQLOperations) LockBreakers(relayName string) (unlock func()) {
	s.T.Helper()
	return s.lock("SELECT name FROM outbox_control WHERE kind = 'breaker' AND owner = ? FOR UPDATE", relayName)
}

// lock holds what a query locks; no row that it does not return stays locked.
func (s SQLOperations) lock(query string, args ...any) (unlock func()) {
	s.T.Helper()
	tx, err := s.DB.BeginTx(s.T.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		s.T.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = tx.Rollback() }) // where the test is over, its context has done it
	s.T.Cleanup(unlock)
	if _, err := tx.Exec(s.bind(query), args...); err != nil {
		s.T.Fatalf("%v, in: %s", err, query)
	}
	return unlock
}

// Breakers implements Looker.
func (s SQLOperations) Breakers(relayName string) map[string]string {
	s.T.Helper()
	rows, err := s.DB.Query(s.bind("SELECT name, value FROM outbox_control WHERE kind = 'breaker' AND owner = ?"), relayName)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // Err has told what went wrong
	states := map[string]string{}
	for rows.Next() {
		var name string
		var value []byte
		var b struct{ State string }
		err := rows.Scan(&name, &value)
		if err == nil {
			err = json.Unmarshal(value, &b)
		}
		if err != nil {
			s.T.Fatalf("breaker %s: %v", name, err)
		}
		states[name] = b.State
	}
	if err := rows.Err(); err != nil {
		s.T.Fatal(err)
	}
	return states
}

// SetInstance implements Preparer.
func (s SQLOperations) SetInstance(name string) {
	s.T.Helper()
	value, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		s.T.Fatal(err)
	}
	s.exec("DELETE FROM outbox_control WHERE kind = 'instance'")
	s.exec("INSERT INTO outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?)", string(value))
}
