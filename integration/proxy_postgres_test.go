package integration

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// newPostgresProxy stands in front of the server of a URL, and returns itself and that URL through it. Its parts are the
// client's messages, and whole answers up to "ready for query": a held or cut answer is one whose statement has taken
// effect. Without TLS only.
func newPostgresProxy(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	var target string
	rewrite(t, server, func(u *url.URL) { target = u.Host })
	p := newProxy(t, target, func(*proxy) wire { return &postgresWire{named: map[string]string{}} })
	return p, rewrite(t, server, func(u *url.URL) { u.Host = p.address() })
}

// What the relay says to PostgreSQL, to be asked for or answered. A statement's text comes on one line, its table's name
// perhaps with a schema.
const (
	claimStatement  = `INSERT INTO \S*outbox_lease .* SET state = 'in_flight'`
	loadStatement   = `SELECT .*payload_bytes.* FROM \S*outbox `
	settleStatement = `state = 'done', attempts|AS becomes\(s\)` // of done ones, and of all others
	renewStatement  = `UPDATE \S*outbox_lease SET renewed_at`
	finishStatement = `DELETE FROM \S*outbox_lease`
	takeStatement   = `UPDATE \S*outbox_lease SET relay`
	watchStatement  = `FROM \(VALUES \(true\)\) AS answers`
	moveStatement   = `SET state = 'pending', due_at = \(SELECT claimed_at`
)

// asks matches the message that runs a statement whose text matches the expression, blanks and line ends being the same.
func asks(expression string) func(part) bool { return statement(toServer, expression) }

// answers matches the whole answer to such a statement.
func answers(expression string) func(part) bool { return statement(toClient, expression) }

// commits matches the COMMIT of a transaction in which such a statement ran.
func commits(s side, expression string) func(part) bool {
	re := regexp.MustCompile("(?is)" + expression)
	return func(one part) bool {
		return one.side == s && strings.EqualFold(strings.TrimRight(one.what, "; "), "commit") && re.MatchString(one.tx)
	}
}

func statement(s side, expression string) func(part) bool {
	re := regexp.MustCompile("(?is)" + expression)
	return func(one part) bool { return one.side == s && one.what != "" && re.MatchString(one.what) }
}

// postgresWire knows which statement each message of a connection belongs to. It follows clients that wait for an answer
// before they ask again, as lib/pq does.
type postgresWire struct {
	mu      sync.Mutex
	begun   bool              // the startup message, which has no type, has gone by
	named   map[string]string // prepared statements
	bound   string            // the statement of the last Bind
	running string            // the statement that is being answered
	tx      string
}

func (w *postgresWire) next(s side, in *bufio.Reader) (part, error) {
	if s == toServer {
		return w.question(in)
	}
	return w.answer(in)
}

func (w *postgresWire) question(in *bufio.Reader) (part, error) {
	if !w.begun {
		data, err := message(in, 0)
		if len(data) >= 8 && binary.BigEndian.Uint32(data[4:]) == 80877103 {
			return part{}, errors.New("the client asks for TLS")
		}
		w.begun = true
		return part{side: toServer, data: data}, err
	}
	data, err := message(in, 1)
	if err != nil {
		return part{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	one := part{side: toServer, data: data}
	body := data[5:]
	switch data[0] {
	case 'P': // Parse: name, text
		name, rest := cString(body)
		w.named[name], _ = cString(rest)
	case 'B': // Bind: portal, name
		_, rest := cString(body)
		name, _ := cString(rest)
		w.bound = w.named[name]
	case 'E': // Execute
		one.what = w.run(w.bound)
	case 'Q':
		text, _ := cString(body)
		one.what = w.run(text)
	default: // Parse, Describe, Sync and the like run nothing
		return one, nil
	}
	one.tx = w.tx
	return one, nil
}

// run notes a statement as the one that is answered next, and returns its text on one line.
func (w *postgresWire) run(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.HasPrefix(strings.ToUpper(text), "BEGIN") {
		w.tx = ""
	}
	w.tx += text + ";\n"
	w.running = text
	return text
}

// answer collects messages until the server waits for the client again.
func (w *postgresWire) answer(in *bufio.Reader) (part, error) {
	var all bytes.Buffer
	for {
		data, err := message(in, 1)
		all.Write(data)
		// Z: ready for query. R: authentication, which may want an answer. G, W: COPY, which does.
		if err == nil && !strings.ContainsRune("ZRGW", rune(data[0])) {
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return part{side: toClient, what: w.running, tx: w.tx, data: all.Bytes()}, err
	}
}

// message reads one message: a type of so many bytes, and a length that counts itself.
func message(in *bufio.Reader, typeBytes int) ([]byte, error) {
	head, err := in.Peek(typeBytes + 4)
	if err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(head[typeBytes:]))
	if length < 4 {
		return nil, errors.New("not the protocol of PostgreSQL")
	}
	data := make([]byte, typeBytes+length)
	_, err = io.ReadFull(in, data)
	return data, err
}

func cString(b []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}
