package webhook

import (
	"net/http"
	"strconv"
	"strings"

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

// authLimit is how many attempts a 401 or 403 may cost: a missing permission seldom comes by waiting.
const authLimit = 3

// rules say what a status is: statusRule, and what the configuration has otherwise.
type rules struct {
	outcomes          map[string]relay.Rule
	remembersFailures bool
	onGonePause       bool
}

func (r rules) of(status int) relay.Outcome {
	o := statusRule(status)
	rule, named := r.outcomes[strconv.Itoa(status)]
	if !named {
		rule, named = r.outcomes[strconv.Itoa(status/100)+"xx"]
	}
	switch {
	case named:
		o = rule.Instead(o, statusText(status))
	case r.remembersFailures && status/100 == 5:
		o.Reason = relay.Unknowable
		o.Err += ": it remembers its failures, and would answer this key so for ever"
	}
	o.Status = status
	o.Pause = r.onGonePause && status == http.StatusGone && o.Kind == relay.KindRetry
	return o
}

// statusRule says what a status means. docs/outcomes.md has the same with all that follows.
//
//	outcome  statuses
//	done     2xx
//	retry    404, 405, 407, 408, 409, 410, 421, 425, 426, 429, every 3xx (never followed), 5xx, and what is no status;
//	         401 and 403, which end failed(rejected) at the third attempt
//	fail     too_large: 413; rejected: 400, 402, 406, 411, 412, 414 to 417, 422, 428, 431, 451 and 4xx not named here
func statusRule(status int) relay.Outcome {
	text := statusText(status)
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

func statusText(status int) string {
	return strings.TrimSpace("HTTP " + strconv.Itoa(status) + " " + http.StatusText(status))
}
