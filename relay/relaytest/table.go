package relaytest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Table is an outbox in memory that several relays may share, with the semantics of relay/DESIGN.md. Its clock
// is time.Now, so it runs under testing/synctest. Looking for due messages walks the whole table: it is for tests with
// thousands of messages, not millions. Safe for concurrent use.
type Table struct {
	mu       sync.Mutex
	messages map[string]*message
	attempts map[string][]Attempt
	leases   map[relay.LeaseID]*lease
	beats    map[string]beat
	locks    map[string]int // sessions that hold a row of a relay or of its breakers
	lastSeq  int64
	duties   map[duty]relay.Duty

	operations  []*operation
	corrections map[correctionKey]*correction
	pauses      map[relay.Target]pause
	instance    string // that the outbox belongs to; "": none
}

// beat is what a relay last told of itself, and when.
type beat struct {
	relay.Beat
	seen time.Time
}

// message is a row with what the application wrote; locked counts the sessions that hold its row lock.
type message struct {
	Row
	seed   Seed
	locked int
}

// lease is a lease row; ids are the messages that were claimed under it.
type lease struct {
	LeaseRow
	ids []string
}

// NewTable makes an empty outbox.
func NewTable() *Table {
	return &Table{
		messages: map[string]*message{},
		attempts: map[string][]Attempt{},
		leases:   map[relay.LeaseID]*lease{},
		beats:    map[string]beat{},
		locks:    map[string]int{},
		duties:   map[duty]relay.Duty{},

		corrections: map[correctionKey]*correction{},
		pauses:      map[relay.Target]pause{},
	}
}

// Store opens the table for a relay of that name, of no instance.
func (t *Table) Store(relayName string) *Memory { return t.StoreOf(relayName, "") }

// StoreOf opens the table for a relay of an instance.
func (t *Table) StoreOf(relayName, instance string) *Memory {
	return &Memory{table: t, relay: relayName, instance: instance}
}

// Insert adds pending messages and returns their ids, in the order given. An id that is there already inserts nothing.
func (t *Table) Insert(seeds ...Seed) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]string, len(seeds))
	for i, s := range seeds {
		ids[i] = t.insert(s, time.Now())
	}
	return ids
}

func (t *Table) insert(s Seed, now time.Time) string {
	t.lastSeq++
	if s.ID == "" {
		s.ID = timeOrderedUUID(now, t.lastSeq)
	}
	if t.messages[s.ID] != nil {
		return s.ID
	}
	s.ContentType = cmp.Or(s.ContentType, "application/json")
	s.SchemaVersion = cmp.Or(s.SchemaVersion, 1)
	s.Headers = cmp.Or(s.Headers, "{}")
	s.Payload = slices.Clone(s.Payload)
	m := &message{seed: s, Row: Row{
		ID: s.ID, Seq: t.lastSeq, RoutingKey: s.Type, State: relay.Pending, SendID: s.SendID,
		Attempts: s.Attempts, Lapses: s.Lapses, CreatedAt: now.Add(-s.Age), DueAt: now.Add(s.Delay),
	}}
	if s.AggregateType != nil {
		m.RoutingKey = *s.AggregateType
	}
	if s.Expires != 0 {
		m.ExpiresAt = now.Add(s.Expires)
	}
	if s.UnknownFor != 0 {
		m.UnknownSince = now.Add(-s.UnknownFor)
	}
	t.messages[s.ID] = m
	return s.ID
}

// timeOrderedUUID is a version 7 UUID (RFC 9562) with n in place of random bits, so that ids of a test are the same in
// every run under a fake clock.
func timeOrderedUUID(now time.Time, n int64) string {
	ms := now.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16&0xffffffff, ms&0xffff, n)
}

// Lock holds the row lock of a message, as another session would, until unlock is called.
func (t *Table) Lock(id string) (unlock func()) {
	t.addLock(id, 1)
	return sync.OnceFunc(func() { t.addLock(id, -1) })
}

func (t *Table) addLock(id string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.messages[id]; m != nil {
		m.locked += n
	}
}

// DropLease deletes the row of a lease and leaves its messages as they are.
func (t *Table) DropLease(id relay.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.leases, id)
}

// Delete removes a message, as retention does.
func (t *Table) Delete(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.messages, id)
}

// Row reads a message; a Row without ID says that there is none.
func (t *Table) Row(id string) Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.messages[id]
	if m == nil {
		return Row{}
	}
	row := m.Row
	row.Now = time.Now()
	return row
}

// Rows reads all messages, by seq.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]Row, 0, len(t.messages))
	for _, m := range t.messages {
		row := m.Row
		row.Now = time.Now()
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows
}

// Attempts reads the rows of outbox_attempt of a message, in the order in which they were written.
func (t *Table) Attempts(id string) []Attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.attempts[id])
}

// Leases reads all lease rows, by ascending lease id.
func (t *Table) Leases() []LeaseRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]LeaseRow, 0, len(t.leases))
	for _, id := range slices.Sorted(maps.Keys(t.leases)) {
		rows = append(rows, t.leases[id].LeaseRow)
	}
	return rows
}
