package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// The classes of outcomes that this destination reports.
const (
	class3xx       = "http_3xx"
	class4xx       = "http_4xx"
	class5xx       = "http_5xx"
	classAuth      = "auth"
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

const (
	authLimit        = 3              // attempts: a missing permission seldom comes by waiting
	maxResultBytes   = 255            // what the result column holds; what is longer is an answer
	maxKeptBytes     = 4 << 10        // of an answer
	maxRetryAfter    = 24 * time.Hour // the relay follows none for longer
	headerLocation   = "Location"     // RFC 9110, 10.2.2
	headerDate       = "Date"         // RFC 9110, 6.6.1
	headerRetryAfter = "Retry-After"  // RFC 9110, 10.2.3
)

// judge makes the outcome of an answer. What the receiver wrote goes into result and answer alone: an error text is also
// logged, and an answer may repeat the payload.
func judge(status int, header http.Header, body []byte, now time.Time) relay.Outcome {
	o := statusRule(status)
	if o.Kind == relay.KindRetry {
		o.RetryAfter = retryAfter(header, now)
	}
	if to := place(header.Get(headerLocation)); o.Class == class3xx && to != "" {
		o.Err += "; it leads to " + to
	}
	if o.Kind == relay.KindDone {
		o.Result = header.Get(headerLocation)
		if o.Result == "" {
			o.Result = string(body[:min(len(body), maxResultBytes)])
		}
	}
	if o.Kind != relay.KindDone || len(body) > maxResultBytes {
		o.Answer = string(body[:min(len(body), maxKeptBytes)])
	}
	return o
}

// statusRule says what a status means. relay/DESIGN.md, Decide.
//
//	outcome  statuses
//	done     2xx
//	retry    404, 405, 407, 408, 409, 410, 421, 425, 426, 429, every 3xx (never followed), 5xx, and what is no status;
//	         401 and 403, which end failed(rejected) at the third attempt
//	fail     too_large: 413; rejected: 400, 402, 406, 411, 412, 414 to 417, 422, 428, 431, 451 and 4xx not named here
func statusRule(status int) relay.Outcome {
	text := strings.TrimSpace("HTTP " + strconv.Itoa(status) + " " + http.StatusText(status))
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return relay.Outcome{Kind: relay.KindRetry, Class: classAuth, Err: text, Limit: authLimit}
	case http.StatusProxyAuthRequired:
		return relay.Retry(classAuth, text)
	case http.StatusNotFound, http.StatusGone:
		return relay.Retry(classNotFound, text)
	case http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest,
		http.StatusTooEarly, http.StatusUpgradeRequired:
		return relay.Retry(class4xx, text)
	case http.StatusTooManyRequests:
		return relay.Retry(classThrottled, text)
	case http.StatusRequestEntityTooLarge:
		return relay.Fail(relay.TooLarge, classTooLarge, text)
	}
	switch status / 100 {
	case 2:
		return relay.Done("")
	case 3:
		return relay.Retry(class3xx, text+": redirects are not followed")
	case 4:
		return relay.Fail(relay.Rejected, class4xx, text)
	case 5:
		return relay.Retry(class5xx, text)
	}
	return relay.Retry(classOther, text)
}

// place is a URL without what may be secret in it.
func place(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	text := u.String()
	return text[:min(len(text), maxResultBytes)]
}

// retryAfter is how long the receiver asks to be left alone, at most 24 h: seconds, or a date as the receiver's own clock
// has it. 0: it does not ask, asks for a time that is over, or in no form that there is.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get(headerRetryAfter)
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get(headerDate)); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// faultRule judges a send without an answer. Nothing written is unsent, whatever the trouble was; after the first byte it
// is unknown. Errors of reading an answer are not repeated: they may quote it.
func faultRule(err error, wrote bool) relay.Outcome {
	class := classOf(err)
	switch {
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
		errors.As(err, &record), errors.As(err, &op) && op.Op == "remote error":
		return classTLS
	case errors.As(err, &dns):
		return classDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return classRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &slow) && slow.Timeout():
		return classTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return classReset
	}
	return classOther
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
