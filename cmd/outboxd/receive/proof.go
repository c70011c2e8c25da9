package receive

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// tolerance is how old or how far ahead a signature's time may be, as the libraries of Standard Webhooks have it.
const tolerance = 5 * time.Minute

// Secrets are the keys of Standard Webhooks, of which one must have signed.
type Secrets [][]byte

// ParseSecrets reads secrets such as whsec_…, one a line. No error holds one.
func ParseSecrets(text string) (Secrets, error) {
	var all Secrets
	for i, word := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(word, "whsec_"))
		if err != nil || len(key) < 24 || len(key) > 64 {
			return nil, fmt.Errorf("secret %d is not whsec_ and 24 to 64 bytes in base64", i+1)
		}
		all = append(all, key)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no secret in it")
	}
	return all, nil
}

// prove looks at who sent a request. Without proof it is not worked on.
func (r *Receiver) prove(req *http.Request, body []byte, v *visit) (answer, bool) {
	if !r.knows(req) {
		return v.refuse(BadToken, http.StatusUnauthorized, "the bearer token is missing, or another one"), false
	}
	if len(r.options.Secrets) > 0 {
		if err := r.options.Secrets.verify(req.Header, body, time.Now()); err != nil {
			return v.refuse(BadSignature, http.StatusUnauthorized, err.Error()), false
		}
	}
	return answer{}, true
}

// knows tells whether a request has the token, where one is demanded.
func (r *Receiver) knows(req *http.Request) bool {
	given, found := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	return r.options.Bearer == "" || found && subtle.ConstantTimeCompare([]byte(given), []byte(r.options.Bearer)) == 1
}

// verify checks a signature: HMAC-SHA256 over id, time and body (standard-webhooks, spec/standard-webhooks.md).
func (s Secrets) verify(h http.Header, body []byte, now time.Time) error {
	id, at := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || err != nil {
		return errors.New("webhook-id or webhook-timestamp is missing, or no number")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return fmt.Errorf("webhook-timestamp is more than %s away: is it signed anew for each send, and are the clocks right?", tolerance)
	}
	for _, secret := range s {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for given := range strings.FieldsSeq(h.Get("webhook-signature")) {
			if hmac.Equal([]byte(given), want) {
				return nil
			}
		}
	}
	return errors.New("no webhook-signature fits the secret and these bytes")
}
