package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Standard Webhooks, spec/standard-webhooks.md of github.com/standard-webhooks/standard-webhooks.
const (
	headerWebhookID        = "webhook-id"
	headerWebhookTimestamp = "webhook-timestamp"
	headerWebhookSignature = "webhook-signature"
	signingPrefix          = "whsec_"
	minKeyBytes            = 24
	maxKeyBytes            = 64
)

// signingKeys reads secrets of the form whsec_ and base64 of 24 to 64 bytes, of which there is at least one, separated by
// blanks, commas or line ends. The error names a secret by its place.
func signingKeys(text string) ([][]byte, error) {
	var keys [][]byte
	for i, secret := range signingSecrets(text) {
		encoded, found := strings.CutPrefix(secret, signingPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !found || err != nil || len(key) < minKeyBytes || len(key) > maxKeyBytes {
			return nil, fmt.Errorf("secret %d is not whsec_ and base64 of %d to %d bytes", i+1, minKeyBytes, maxKeyBytes)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no secret in it; give whsec_ and base64 of 24 to 64 bytes")
	}
	return keys, nil
}

// signingSecrets takes a list of secrets apart.
func signingSecrets(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,\t\r\n", r) })
}

// sign sets the headers of Standard Webhooks: a signature by each key, in their order, so that a receiver may hold either
// while a secret is replaced. It is made at the send and never stored: receivers take a timestamp for some minutes only.
func sign(to http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	to.Set(headerWebhookID, id)
	to.Set(headerWebhookTimestamp, timestamp)
	to.Set(headerWebhookSignature, strings.Join(signatures, " "))
}
