package receive

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// keys is the table of the keys that were seen: what processed_message is in a database.
type keys struct {
	remember time.Duration
	max      int

	mu        sync.Mutex
	seen      map[string]*entry
	order     []*entry // the oldest first
	forgotten int      // keys that there was no room for
	effects   int
	doubled   int // keys with more than one effect
}

// entry is a key.
type entry struct {
	key, kind string
	body      [sha256.Size]byte
	at        time.Time // of the first request, or of the first after it was forgotten
	running   bool
	answer    answer
	effects   int
	repeats   int // that were answered without another effect
}

func newKeys(remember time.Duration, most int) *keys {
	return &keys{remember: remember, max: most, seen: map[string]*entry{}}
}

// begin says what to do with a request: Effect means that the work is to be done, and finish called; Repeat, that first is
// the answer.
func (k *keys) begin(key, kind string, body [sha256.Size]byte) (e *entry, first answer, verdict Verdict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e = k.seen[key]
	switch {
	case e == nil:
		e = &entry{key: key, kind: kind}
		k.keep(e)
	case k.remember == 0 || time.Since(e.at) > k.remember: // as if it had never come; only the count stays
	case e.body != body:
		return e, answer{}, OtherBody
	case e.running:
		return e, answer{}, Running
	default:
		e.repeats++
		return e, e.answer, Repeat
	}
	e.body, e.at, e.running = body, time.Now(), true
	return e, answer{}, Effect
}

// keep takes an entry in, and lets the oldest go where there are too many.
func (k *keys) keep(e *entry) {
	k.seen[e.key] = e
	k.order = append(k.order, e)
	if len(k.order) > k.max {
		delete(k.seen, k.order[0].key)
		k.order = k.order[1:]
		k.forgotten++
	}
}

// finish is the work, and the note of what it is answered with.
func (k *keys) finish(e *entry, status int) answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.effects++
	if e.effects++; e.effects == 2 {
		k.doubled++
	}
	e.running = false
	e.answer = answer{status: status, text: fmt.Sprintf("{\"id\":\"effect-%d\"}\n", k.effects), json: true}
	return e.answer
}

// did tells whether a key had an effect.
func (k *keys) did(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.seen[key]
	return e != nil && e.effects > 0
}
