package postgres

import (
	"net"
	"strings"

	"github.com/outboxd/outboxd/dialect"
)

// greetings are the first bytes that a server of PostgreSQL's protocol, or a pooler, can send: yes and no to TLS; a message
// of authentication, negotiation, notice or error; TLS at once, with sslnegotiation=direct. PostgreSQL manual, "Message
// Flow", "Start-up".
const greetings = "SNRvE\x16"

// greeted is a connection whose first byte is looked at: what begins otherwise is another service, and waiting for it to
// become a database would not help.
type greeted struct {
	net.Conn
	heard bool
}

func (g *greeted) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if n > 0 && !g.heard {
		g.heard = true
		if !strings.Contains(greetings, string(b[:1])) {
			return 0, dialect.Refuse(dialect.ErrServer, "what listens at %s is no PostgreSQL: check host and port of the database URL", g.RemoteAddr())
		}
	}
	return n, err
}
