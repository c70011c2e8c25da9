package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/eapache/go-resiliency/breaker"

	"github.com/outboxd/outboxd/relay"
)

// What ends a try on our side of sarama.
var (
	errNoAnswer = errors.New("no acknowledgement within the send's time-out")
	errNotTaken = errors.New("the cluster took nothing within the send's time-out")
	errClosed   = errors.New("the destination is closed")
)

// The classes of outcomes that this destination reports.
const (
	classAuth      = "auth"
	classBroker    = "broker"
	classDNS       = "dns"
	classInvalid   = "invalid"
	classNotFound  = "not_found"
	classOther     = "other"
	classRefused   = "refused"
	classReset     = "reset"
	classThrottled = "throttled"
	classTimeout   = "timeout"
	classTLS       = "tls"
	classTooLarge  = "too_large"
)

// try is what is known of a try beside its error.
type try struct {
	topic string
	size  int  // bytes, as sarama counts them
	sent  bool // it was put into a batch for a broker: it may have gone out
	lost  bool // a connection was lost since it was handed over
	open  bool // a connection to a broker is open
	alone bool // in a request of its own
}

// verdict is an outcome and what else follows from it.
type verdict struct {
	relay.Outcome
	suspect bool // refused in company: it goes again, alone, before anything is said of it
	renew   bool // the producer cannot go on
}

// rule is what an error says of a message.
type rule struct {
	kind   relay.Kind
	reason relay.Reason // of a fail
	class  string
	wide   bool   // it speaks of the whole cluster
	renew  bool   // the producer cannot go on
	ours   bool   // a fail that no broker said: nothing went out
	mend   string // what to do about it; empty where it passes by itself
}

// refused is a fail that we know before anything is sent.
func refused(reason relay.Reason, class, err string) relay.Outcome {
	o := relay.Fail(reason, class, err)
	o.Ours = true
	return o
}

// judge classifies a try. A broker's answer is judged by its code (codeRule), everything else by its type (faultRule).
// What never left the gate is unsent, whatever became of it.
func judge(err error, t try) verdict {
	if err == nil {
		return verdict{Outcome: relay.Outcome{Kind: relay.KindDone}}
	}
	text, r := "", rule{}
	if code, ok := codeOf(err); ok {
		text, r = code.Error(), codeRule(code)
	} else {
		text, r = err.Error(), faultRule(err, t)
	}
	if !t.sent {
		r.kind = relay.KindUnsent
	}
	if r.kind == relay.KindFail && !t.alone {
		return verdict{suspect: true}
	}
	return verdict{renew: r.renew, Outcome: relay.Outcome{
		Kind: r.kind, Ours: r.ours && r.kind == relay.KindFail, Reason: r.reason, Class: r.class, Wide: r.wide, Err: t.describe(text, r),
	}}
}

// codeOf finds the broker's code in err. Where a broker explains why it refuses to authenticate, sarama 1.61.1 wraps the
// code so that only errors.Is finds it.
func codeOf(err error) (code sarama.KError, ok bool) {
	if errors.As(err, &code) {
		return code, true
	}
	for _, code := range []sarama.KError{
		sarama.ErrSASLAuthenticationFailed, sarama.ErrIllegalSASLState,
		sarama.ErrUnsupportedSASLMechanism,
	} {
		if errors.Is(err, code) {
			return code, true
		}
	}
	return sarama.ErrNoError, false
}

// codeRule says what a broker's error code means for each message of the batch that it was said of.
//
//	outcome  codes
//	done     none, duplicate sequence number (sarama reports both as success)
//	retry    the retriable codes: no leader yet or any more, replicas missing before the append, storage, coordinator,
//	         quota, corrupt message; idempotence lost track (out of order, unknown producer, fenced, old epoch), which
//	         also ends the producer; and every code that is not named here
//	unknown  not enough replicas after the append, time-out, connection lost, unknown server error
//	unsent   unknown or impossible topic, no right to write to it; wide: no right to the cluster, authentication
//	fail     too_large: message or batch too large; rejected: invalid record. Only where refused alone.
func codeRule(code sarama.KError) rule {
	switch code {
	case sarama.ErrNotEnoughReplicasAfterAppend, sarama.ErrRequestTimedOut:
		return rule{kind: relay.KindUnknown, class: classTimeout}
	case sarama.ErrNetworkException:
		return rule{kind: relay.KindUnknown, class: classReset}
	case sarama.ErrUnknown:
		return rule{kind: relay.KindUnknown, class: classBroker}
	case sarama.ErrUnknownTopicOrPartition, sarama.ErrInvalidTopic:
		return rule{kind: relay.KindUnsent, class: classNotFound, mend: "create the topic, or change the destination's topic"}
	case sarama.ErrTopicAuthorizationFailed:
		return rule{kind: relay.KindUnsent, class: classAuth, mend: "grant WRITE and DESCRIBE on it"}
	case sarama.ErrClusterAuthorizationFailed, sarama.ErrTransactionalIDAuthorizationFailed:
		return rule{kind: relay.KindUnsent, class: classAuth, wide: true, mend: "grant IDEMPOTENT_WRITE on the cluster"}
	case sarama.ErrSASLAuthenticationFailed, sarama.ErrUnsupportedSASLMechanism, sarama.ErrIllegalSASLState,
		sarama.ErrSecurityDisabled, sarama.ErrDelegationTokenAuthDisabled, sarama.ErrDelegationTokenNotFound,
		sarama.ErrDelegationTokenOwnerMismatch, sarama.ErrDelegationTokenRequestNotAllowed,
		sarama.ErrDelegationTokenAuthorizationFailed, sarama.ErrDelegationTokenExpired:
		return rule{kind: relay.KindUnsent, class: classAuth, wide: true, mend: "check the destination's sasl settings"}
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge:
		return rule{
			kind: relay.KindFail, reason: relay.TooLarge, class: classTooLarge,
			mend: "send less, or raise max.message.bytes of the topic",
		}
	case sarama.ErrInvalidRecord:
		return rule{
			kind: relay.KindFail, reason: relay.Rejected, class: classInvalid,
			mend: "a compacted topic wants a key; otherwise see the broker's log",
		}
	case sarama.ErrThrottlingQuotaExceeded:
		return rule{kind: relay.KindRetry, class: classThrottled}
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch,
		sarama.ErrProducerFenced, sarama.ErrInvalidProducerIDMapping, sarama.ErrInvalidTxnState,
		sarama.ErrTransactionCoordinatorFenced:
		return rule{kind: relay.KindRetry, class: classBroker, renew: true}
	default:
		return rule{kind: relay.KindRetry, class: classBroker}
	}
}

// faultRule judges an error that is no broker's answer. A batch that found no connection went out only if an earlier try
// of it did, whose connection was lost then; everything else may have gone out. Where no connection is left, connecting
// anew finds the cluster sooner than sarama's producer, which then refuses a topic for 10 s at a time.
func faultRule(err error, t try) rule {
	r := rule{kind: relay.KindUnknown, class: classOf(err)}
	var encoding sarama.PacketEncodingError
	var token tokenError
	switch {
	case errors.As(err, &token):
		return rule{kind: relay.KindUnsent, class: classAuth, wide: true, mend: "check sasl.token_file"}
	case errors.As(err, &encoding): // of a whole request, because of one message in it
		return rule{kind: relay.KindFail, reason: relay.Rejected, class: classInvalid, ours: true}
	case r.class == classTLS: // of a handshake: nothing goes out before it
		return rule{kind: relay.KindUnsent, class: classTLS, wide: true, mend: "check the destination's tls settings"}
	case errors.Is(err, sarama.ErrOutOfBrokers):
		r.wide, r.renew, r.mend = true, !t.open, "check the destination's brokers"
	case errors.Is(err, breaker.ErrBreakerOpen):
		r.wide, r.renew, r.mend = !t.open, !t.open, "it failed 3 times in a row, and is tried again after 10 s"
	case isUnconnected(err):
		r.wide, r.renew = !t.open, !t.open
	default:
		r.wide = !t.sent && !t.open
		return r
	}
	if !t.lost {
		r.kind = relay.KindUnsent
	}
	return r
}

// isUnconnected tells whether there was no connection to send on.
func isUnconnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, sarama.ErrNotConnected) ||
		errors.Is(err, sarama.ErrBrokerNotFound)
}

// classOf names the trouble with a connection.
func classOf(err error) string {
	var (
		dns      *net.DNSError
		slow     net.Error
		cert     *tls.CertificateVerificationError
		invalid  x509.CertificateInvalidError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		record   tls.RecordHeaderError
		op       *net.OpError
	)
	switch {
	case errors.As(err, &cert), errors.As(err, &invalid), errors.As(err, &unknown), errors.As(err, &hostname),
		errors.As(err, &record), errors.As(err, &op) && op.Op == "remote error": // how crypto/tls reports an alert
		return classTLS
	case errors.As(err, &dns):
		return classDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return classRefused
	case errors.Is(err, errNoAnswer), errors.Is(err, errNotTaken), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &slow) && slow.Timeout():
		return classTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return classReset
	case errors.Is(err, sarama.ErrOutOfBrokers), isUnconnected(err), errors.Is(err, breaker.ErrBreakerOpen),
		errors.Is(err, errClosed):
		return classBroker
	}
	return classOther
}

// describe is one line for a person.
func (t try) describe(text string, r rule) string {
	text = strings.Join(strings.Fields(text), " ")
	if r.reason == relay.TooLarge {
		text = fmt.Sprintf("%s: %d bytes", text, t.size)
	}
	if t.topic != "" {
		text = fmt.Sprintf("topic %q: %s", t.topic, text)
	}
	if r.mend != "" {
		text += "; " + r.mend
	}
	return text
}
