package program

import (
	"testing"

	"github.com/outboxd/outboxd/relay"
)

func TestSend(t *testing.T) {
	t.Parallel()
	s := shell(t, nil, `cat; echo; env | sort`)
	o := send(t, s)
	wantKind(t, o, relay.KindDone, "")
	t.Logf("%+v", o)
}
