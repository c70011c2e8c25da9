package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/outboxd/outboxd/relay"
)

// key makes a signing secret of so many bytes.
func key(fill byte, length int) string {
	return signingPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(fill)), length)))
}

// TestSignature holds that receivers of Standard Webhooks take our requests, with any of the secrets.
func TestSignature(t *testing.T) {
	t.Parallel()
	w := newWire(t, reply(ok))
	newest, old := key('n', 24), key('o', 64)
	s := newSink(t, w.url(), func(c *Config) { c.Secrets = is(newest + ",\r\n " + old + "\n") })
	for _, id := range []string{"0192f0c1-7c4e-7d3e-8f00-0123456789ab", "A_-z9", "x"} {
		for _, payload := range []string{"", "{}", "  {\"a\" : 1}\r\n", "\x00\xff\xfe", "größe 😀", strings.Repeat("x", 1<<20)} {
			m := newMessage(id)
			m.Payload = []byte(payload)
			if o := s.Send(t.Context(), m); o.Kind != relay.KindDone {
				t.Fatalf("%+v", o)
			}
			requests, bodies, _ := w.seen()
			header, body := requests[len(requests)-1].Header, bodies[len(bodies)-1]
			if header.Get(headerWebhookID) != id {
				t.Errorf("webhook-id is %q, want %q", header.Get(headerWebhookID), id)
			}
			for _, secret := range []string{newest, old} {
				if err := must(standardwebhooks.NewWebhook(secret)).Verify([]byte(body), header); err != nil {
					t.Errorf("%s, %.20q: %v", id, payload, err)
				}
			}
			if must(standardwebhooks.NewWebhook(key('x', 24))).Verify([]byte(body), header) == nil {
				t.Error("a secret that is not ours verifies it")
			}
		}
	}
}

// TestSignaturesInOrder holds the newest secret's signature in front, and the time of this attempt.
func TestSignaturesInOrder(t *testing.T) {
	t.Parallel()
	first, second := http.Header{}, http.Header{}
	keys := must(signingKeys(key('n', 24) + " " + key('o', 24)))
	now := time.Unix(1_700_000_000, 999)
	sign(first, keys, "a", now, []byte("x"))
	sign(second, keys[:1], "a", now, []byte("x"))
	both, one := first.Get(headerWebhookSignature), second.Get(headerWebhookSignature)
	if !strings.HasPrefix(both, one+" v1,") || strings.Count(both, "v1,") != 2 || first.Get(headerWebhookTimestamp) != "1700000000" {
		t.Errorf("%v and %v", first, second)
	}
}

// TestSigningKeys holds which secrets are taken, and that the words about others do not show them.
func TestSigningKeys(t *testing.T) {
	t.Parallel()
	good := key('k', 32)
	for name, c := range map[string]struct{ text, want string }{
		"one": {good, ""}, "shortest and longest": {key('k', 24) + "," + key('k', 64), ""},
		"none":        {" ,\n", "there is no secret in it; give whsec_ and base64 of 24 to 64 bytes"},
		"no prefix":   {strings.TrimPrefix(good, signingPrefix), "secret 1 is not whsec_ and base64 of 24 to 64 bytes"},
		"no base64":   {good + " " + signingPrefix + strings.Repeat("*", 40), "secret 2 is not whsec_ and base64 of 24 to 64 bytes"},
		"too short":   {key('k', 23), "secret 1 is not whsec_ and base64 of 24 to 64 bytes"},
		"too long":    {good + "," + good + "," + key('k', 65), "secret 3 is not whsec_ and base64 of 24 to 64 bytes"},
		"private key": {"whsk_" + strings.TrimPrefix(good, signingPrefix), "secret 1 is not whsec_ and base64 of 24 to 64 bytes"},
	} {
		_, err := signingKeys(c.text)
		if got := textOf(err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSecretsAreReadAnew holds that a secret that was replaced signs the next send, and that one that cannot be read, or is
// none, lets nothing out.
func TestSecretsAreReadAnew(t *testing.T) {
	t.Parallel()
	var text atomic.Value
	text.Store(key('a', 24))
	w := newWire(t, reply(ok))
	s := newSink(t, w.url(), func(c *Config) {
		c.Secrets = func() (string, error) {
			if text.Load() == "" {
				return "", errors.New("cannot read ./secrets: no such file or directory")
			}
			return text.Load().(string), nil
		}
	})
	for _, fill := range []byte{'a', 'b'} {
		text.Store(key(fill, 24))
		if o := s.Send(t.Context(), newMessage("a")); o.Kind != relay.KindDone {
			t.Fatalf("%+v", o)
		}
		requests, bodies, _ := w.seen()
		last := len(requests) - 1
		if err := must(standardwebhooks.NewWebhook(key(fill, 24))).Verify([]byte(bodies[last]), requests[last].Header); err != nil {
			t.Error(err)
		}
	}
	text.Store("")
	wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classAuth, "webhook.secrets: cannot read ./secrets")
	text.Store("hunter2")
	wantKind(t, s.Send(t.Context(), newMessage("a")), relay.KindUnsent, classAuth, "webhook.secrets: secret 1 is not whsec_")
	if w.count() != 2 {
		t.Errorf("%d requests", w.count())
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
