package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/outboxd/outboxd/relay"
)

// faultRule judges a send without an answer. Nothing written is unsent, whatever the trouble was; after the first byte it
// is unknown. Errors of reading an answer are not repeated: they may quote it.
func faultRule(err error, p *progress) relay.Outcome {
	class, wrote := classOf(err), p.wrote()
	switch {
	case p.late():
		return relay.Unsent(classTimeout, "too late to send it again: from now on the destination may forget the key")
	case isCertificateRefused(err) && !p.reused.Load():
		return relay.Unsent(classTLS, "it does not take our certificate, or wants one: "+oneLine(err))
	case !wrote && errors.As(err, new(unconnected)):
		return relay.Unsent(class, oneLine(err))
	case !wrote && class == classTimeout:
		return relay.Unsent(class, "no connection in time")
	case !wrote:
		return relay.Unsent(classReset, "the connection ended before anything was written")
	case class == classTimeout:
		return relay.Unknown(class, "no answer in time")
	case class == classReset:
		return relay.Unknown(class, "the connection ended before an answer came")
	}
	return relay.Unknown(class, "what came is no answer of HTTP")
}

// classOf names the trouble with a connection.
func classOf(err error) string {
	var (
		rule *notAllowed
		dns  *net.DNSError
		slow net.Error
	)
	switch {
	case isUntrusted(err):
		return classTLS
	case errors.As(err, &dns):
		return classDNS
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &rule):
		return classRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &slow) && slow.Timeout():
		return classTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return classReset
	case errors.As(err, new(insecure)):
		return classTLS
	}
	return classOther
}

// isUntrusted tells whether one side of a handshake did not take what the other showed.
func isUntrusted(err error) bool {
	var (
		cert     *tls.CertificateVerificationError
		invalid  x509.CertificateInvalidError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		record   tls.RecordHeaderError
		op       *net.OpError
	)
	return errors.As(err, &cert) || errors.As(err, &invalid) || errors.As(err, &unknown) || errors.As(err, &hostname) ||
		errors.As(err, &record) || errors.As(err, &op) && op.Op == "remote error"
}

// isCertificateRefused tells whether the other side ended the handshake because of our certificate. TLS 1.3 lets us write
// before it has looked at that, so the alert comes where an answer should be, and nobody has read the request. That is so of
// the first request of a connection: on a later one the handshake is long over, and the alert says something else.
func isCertificateRefused(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return false
	}
	// bad, unsupported, revoked, expired, unknown, of an unknown CA, without access, missing. RFC 8446, 6.2.
	for _, alert := range []tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116} {
		if op.Err.Error() == alert.Error() { // the type of op.Err is crypto/tls's own, its words are those of an AlertError
			return true
		}
	}
	return false
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
