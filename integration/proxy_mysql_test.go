package integration

import (
	"bufio"
	"bytes"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// newMySQLProxy is newPostgresProxy for MySQL and MariaDB. Its parts are the client's commands, and of an answer the first
// packet, behind which the rest waits: a held or cut answer is one whose statement has taken effect.
func newMySQLProxy(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	var target string
	rewrite(t, server, func(u *url.URL) { target = u.Host })
	p := newProxy(t, target, func(*proxy) wire { return &mysqlWire{} })
	return p, rewrite(t, server, func(u *url.URL) { u.Host = p.address() })
}

// What the relay says to MySQL, as in the proxy of PostgreSQL.
const (
	mysqlClaim  = `INSERT INTO \S*outbox_lease`
	mysqlLoad   = `SELECT o.seq, o.id, COALESCE\(o.send_id`
	mysqlSettle = `SET o.state = 'done'|SET o.state = s.state` // of done ones, and of all others
	mysqlWatch  = `CONNECTION_ID\(\) AS session`
)

// Commands of the protocol that carry a statement. The driver closes a prepared one before it prepares another.
const (
	comQuery   = 0x03
	comPrepare = 0x16
	comExecute = 0x17
)

// mysqlWire knows which statement each command and answer of a connection belongs to. It follows clients that wait for an
// answer before they ask again, as the Go driver does.
type mysqlWire struct {
	mu       sync.Mutex
	asked    bool   // the server has yet to begin its answer
	prepared string // the statement that was prepared last
	running  string // the statement that is being answered
	tx       string
}

func (w *mysqlWire) next(s side, in *bufio.Reader) (part, error) {
	data, err := packet(in)
	if err != nil {
		return part{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == toClient {
		one := part{side: s, data: data}
		if w.asked {
			one.what, one.tx, w.asked = w.running, w.tx, false
		}
		return one, nil
	}
	one := part{side: s, data: data}
	if number, command := data[3], data[4:]; number == 0 && len(command) > 0 { // all others go on with what was begun
		w.running = ""
		switch command[0] {
		case comPrepare:
			w.prepared = oneLine(command[1:])
		case comQuery:
			one.what = w.run(oneLine(command[1:]))
		case comExecute:
			one.what = w.run(w.prepared)
		}
		one.tx = w.tx
	}
	return one, nil
}

func (w *mysqlWire) run(text string) string {
	if begin := strings.ToUpper(text); strings.HasPrefix(begin, "START TRANSACTION") || strings.HasPrefix(begin, "BEGIN") {
		w.tx = ""
	}
	w.tx += text + ";\n"
	w.running, w.asked = text, true
	return text
}

func oneLine(text []byte) string { return string(bytes.Join(bytes.Fields(text), []byte(" "))) }

// packet reads one packet: the length of its body in three bytes, its number, the body.
func packet(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	length := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	data := make([]byte, 4+length)
	_, err = io.ReadFull(in, data)
	return data, err
}
