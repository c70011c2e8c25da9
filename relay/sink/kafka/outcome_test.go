package kafka

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/eapache/go-resiliency/breaker"

	"github.com/outboxd/outboxd/relay"
)

// lastCode is above every code that sarama 1.61.1 or Kafka 4.4 know.
const lastCode = 200

// TestEveryCode says of each code that is not a plain retry what it is; all others are retries, with nothing else.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	type want struct {
		kind  relay.Kind
		class string
		wide  bool
		renew bool
	}
	auth := want{kind: relay.KindUnsent, class: "auth", wide: true}
	renew := want{kind: relay.KindRetry, class: "broker", renew: true}
	named := map[sarama.KError]want{
		sarama.ErrUnknown:                            {kind: relay.KindUnknown, class: "broker"},
		sarama.ErrRequestTimedOut:                    {kind: relay.KindUnknown, class: "timeout"},
		sarama.ErrNotEnoughReplicasAfterAppend:       {kind: relay.KindUnknown, class: "timeout"},
		sarama.ErrNetworkException:                   {kind: relay.KindUnknown, class: "reset"},
		sarama.ErrUnknownTopicOrPartition:            {kind: relay.KindUnsent, class: "not_found"},
		sarama.ErrInvalidTopic:                       {kind: relay.KindUnsent, class: "not_found"},
		sarama.ErrTopicAuthorizationFailed:           {kind: relay.KindUnsent, class: "auth"},
		sarama.ErrClusterAuthorizationFailed:         auth,
		sarama.ErrTransactionalIDAuthorizationFailed: auth,
		sarama.ErrUnsupportedSASLMechanism:           auth,
		sarama.ErrIllegalSASLState:                   auth,
		sarama.ErrSASLAuthenticationFailed:           auth,
		sarama.ErrSecurityDisabled:                   auth,
		sarama.ErrDelegationTokenAuthDisabled:        auth,
		sarama.ErrDelegationTokenNotFound:            auth,
		sarama.ErrDelegationTokenOwnerMismatch:       auth,
		sarama.ErrDelegationTokenRequestNotAllowed:   auth,
		sarama.ErrDelegationTokenAuthorizationFailed: auth,
		sarama.ErrDelegationTokenExpired:             auth,
		sarama.ErrMessageSizeTooLarge:                {kind: relay.KindFail, class: "too_large"},
		sarama.ErrMessageSetSizeTooLarge:             {kind: relay.KindFail, class: "too_large"},
		sarama.ErrInvalidRecord:                      {kind: relay.KindFail, class: "invalid"},
		sarama.ErrThrottlingQuotaExceeded:            {kind: relay.KindRetry, class: "throttled"},
		sarama.ErrOutOfOrderSequenceNumber:           renew,
		sarama.ErrUnknownProducerID:                  renew,
		sarama.ErrInvalidProducerEpoch:               renew,
		sarama.ErrInvalidTxnState:                    renew,
		sarama.ErrInvalidProducerIDMapping:           renew,
		sarama.ErrTransactionCoordinatorFenced:       renew,
		sarama.ErrProducerFenced:                     renew,
	}
	for code := sarama.ErrUnknown; code < lastCode; code++ {
		if code == sarama.ErrNoError {
			continue
		}
		w, ok := named[code]
		if !ok {
			w = want{kind: relay.KindRetry, class: "broker"}
		}
		err := fmt.Errorf("wrapped: %w", code)
		alone := try{topic: "orders", size: 7, sent: true, alone: true}
		v := judge(err, alone)
		if got := (want{v.Kind, v.Class, v.Wide, v.renew}); got != w || v.suspect {
			t.Errorf("code %d: %+v (suspect %v), want %+v", code, got, v.suspect, w)
		}
		company := alone
		company.alone = false
		if v := judge(err, company); v.suspect != (w.kind == relay.KindFail) {
			t.Errorf("code %d in company: suspect is %v", code, v.suspect)
		}
		unsent := alone
		unsent.sent = false
		if v := judge(err, unsent); v.Kind != relay.KindUnsent {
			t.Errorf("code %d, never sent: %s", code, v.Kind)
		}
	}
}

func TestFaultsThatAreNoAnswer(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	read := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	sent, lost := try{sent: true}, try{sent: true, lost: true}
	up, upLost := try{sent: true, open: true}, try{sent: true, lost: true, open: true}
	cases := []struct {
		err   error
		try   try
		kind  relay.Kind
		class string
		wide  bool
		renew bool
	}{
		{sarama.Wrap(sarama.ErrOutOfBrokers, dial, dial), try{}, relay.KindUnsent, "refused", true, true},
		{sarama.Wrap(sarama.ErrOutOfBrokers, dial, dial), sent, relay.KindUnsent, "refused", true, true},
		{sarama.Wrap(sarama.ErrOutOfBrokers, dial, dial), lost, relay.KindUnknown, "refused", true, true},
		{sarama.ErrOutOfBrokers, try{open: true}, relay.KindUnsent, "broker", true, false},
		{dial, sent, relay.KindUnsent, "refused", true, true},
		{dial, up, relay.KindUnsent, "refused", false, false},
		{dial, upLost, relay.KindUnknown, "refused", false, false},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "kafka"}}, sent, relay.KindUnsent, "dns", true, true},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, sent, relay.KindUnsent, "timeout", true, true},
		{sarama.ErrNotConnected, up, relay.KindUnsent, "broker", false, false},
		{breaker.ErrBreakerOpen, sent, relay.KindUnsent, "broker", true, true},
		{breaker.ErrBreakerOpen, lost, relay.KindUnknown, "broker", true, true},
		{x509.UnknownAuthorityError{}, lost, relay.KindUnsent, "tls", true, false},
		{read, up, relay.KindUnknown, "timeout", false, false},
		{io.EOF, lost, relay.KindUnknown, "reset", false, false},
		{io.EOF, try{}, relay.KindUnsent, "reset", true, false},
		{sarama.ErrIncompleteResponse, up, relay.KindUnknown, "other", false, false},
		{sarama.PacketDecodingError{Info: "x"}, up, relay.KindUnknown, "other", false, false},
		{sarama.ErrShuttingDown, up, relay.KindUnknown, "other", false, false},
		{sarama.ErrShuttingDown, try{open: true}, relay.KindUnsent, "other", false, false},
		{errNoAnswer, up, relay.KindUnknown, "timeout", false, false},
		{errNoAnswer, try{open: true}, relay.KindUnsent, "timeout", false, false},
		{errNotTaken, try{}, relay.KindUnsent, "timeout", true, false},
	}
	for _, c := range cases {
		v := judge(c.err, c.try)
		if v.Kind != c.kind || v.Class != c.class || v.Wide != c.wide || v.suspect || v.renew != c.renew {
			t.Errorf("%v with %+v: %+v, want %s %s wide %v renew %v", c.err, c.try, v, c.kind, c.class, c.wide, c.renew)
		}
		if v.Err == "" || strings.ContainsAny(v.Err, "\n") {
			t.Errorf("%v: err %q is not one line", c.err, v.Err)
		}
	}
	refused := sarama.Wrap(sarama.ErrOutOfBrokers, sarama.Wrap(sarama.ErrSASLAuthenticationFailed, errors.New("said by the server")))
	if v := judge(refused, try{}); v.Class != "auth" || !v.Wide || strings.Contains(v.Err, "said by") {
		t.Errorf("a broker that explains why it refuses us: %+v, want auth, in our own words", v)
	}
	if v := judge(sarama.PacketEncodingError{Info: "x"}, sent); !v.suspect {
		t.Errorf("a request that cannot be encoded: %+v, want its messages to go alone", v)
	}
	if v := judge(sarama.PacketEncodingError{Info: "x"}, try{sent: true, alone: true}); v.Kind != relay.KindFail || !v.Ours {
		t.Errorf("a message that cannot be encoded: %+v, want a verdict of our own", v)
	}
	if v := judge(sarama.ErrMessageSizeTooLarge, try{sent: true, alone: true}); v.Kind != relay.KindFail || v.Ours {
		t.Errorf("a message that the broker refused: %+v, want its verdict", v)
	}
}
