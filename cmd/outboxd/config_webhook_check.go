package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/sink/webhook"
)

// checkWebhook finds what is ours to know of a webhook destination; webhook.Config.Validate finds the rest.
func (l *loaded) checkWebhook(destination string, d destinationConfig) {
	path, w := destination+".webhook", d.Webhook
	l.checkMemory(path+".dedupe", w.dedupe(), w.Dedupe.wants())
	if w.dedupe().Never && w.RemembersFailures {
		l.warn(path+".remembers_failures", "a receiver that remembers no key cannot repeat a failure; one of this and dedupe is wrong")
	}
	l.checkSecrets(path, w)
	l.checkHeaders(path, w)
	l.checkOutcomes(path+".outcomes", w.Outcomes)
	l.between(path+".connect_timeout", w.ConnectTimeout, 10*time.Millisecond, time.Hour)
	l.oneOf(path+".key_format", w.KeyFormat, webhook.KeyBare, webhook.KeySFString)
	l.oneOf(path+".format", w.Format, webhook.FormatPlain, webhook.FormatCloudEvents)
	l.oneOf(path+".on_gone", w.OnGone, "retry", "pause")
	if e := w.CloudEvents; e != nil {
		l.checkExtensions(path+".cloudevents.extensions", e.Extensions)
	}
	l.failEach(path, "webhook.", w.sink(standIn).Validate())
	if w.authenticates() {
		l.warnShown(path+".url", w.URL)
	}
	if w.OAuth2 != nil {
		l.warnShown(path+".oauth2.token_url", w.OAuth2.TokenURL)
	}
}

// authenticates tells whether requests say who we are in a way that others could use who see it.
func (w *webhookConfig) authenticates() bool {
	for _, name := range slices.Concat(slices.Collect(maps.Keys(w.Headers)), slices.Collect(maps.Keys(w.HeadersFile))) {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return w.sources()["bearer"].given() > 0 || w.Basic != nil || w.OAuth2 != nil
}

// standIn is a Source of what the file itself holds; a secret in another file or a variable is not read before the start.
func standIn(s secretSource) webhook.Source {
	switch {
	case s.given() == 0:
		return nil
	case !s.value.IsZero():
		return func() (string, error) { return s.value.Reveal(), nil }
	}
	return func() (string, error) { return "", errors.New("not read yet") }
}

// checkMemory holds how long a wire key is remembered to what can be meant.
func (l *loaded) checkMemory(path string, d relay.Dedupe, wants string) {
	const least, most = time.Second, 10 * 365 * 24 * time.Hour
	if !d.Never && (d.Window < least || d.Window > most) {
		l.fail(path, "wants %s", wants)
	}
}

// checkSecrets wants each secret in exactly one way, and one way of authentication at most.
func (l *loaded) checkSecrets(path string, w *webhookConfig) {
	sources := w.sources()
	for _, key := range slices.Sorted(maps.Keys(sources)) {
		l.checkSource(path+"."+key, sources[key], w.Basic != nil && key == "basic.password" || key == "oauth2.client_secret")
	}
	for i, secret := range w.Secrets {
		if secret.IsZero() && w.sources()["secrets"].given() > 0 {
			l.fail(fmt.Sprintf("%s.secrets[%d]", path, i), "is empty; give it a value, or take it out")
		}
	}
}

// checkHeaders holds names to their form, so that none is shown which is a secret in the wrong place, and each header to one
// value.
func (l *loaded) checkHeaders(path string, w *webhookConfig) {
	if l.set(path + ".key_header") {
		l.checkHeader(path+".key_header", w.KeyHeader)
	}
	for i, name := range w.AllowHeaders {
		l.checkHeader(fmt.Sprintf("%s.allow_headers[%d]", path, i), name)
	}
	first := map[string]string{}
	static := func(section, name string, empty bool) {
		here, canonical := join(path+"."+section, name), http.CanonicalHeaderKey(name)
		switch there, twice := first[canonical]; {
		case twice:
			l.fail(here, "is the same header as %s; keep one of them", there)
		case empty:
			l.fail(here, "is empty; give it a value, or take it out")
		default:
			l.checkHeader(here, name)
		}
		first[canonical] = join(section, name)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		static("headers", name, w.Headers[name].IsZero())
	}
	for _, name := range slices.Sorted(maps.Keys(w.HeadersFile)) {
		static("headers_file", name, w.HeadersFile[name] == "")
	}
}

func (l *loaded) checkHeader(path, name string) {
	if !regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$").MatchString(name) {
		l.fail(path, "wants the name of a header, such as X-Tenant")
	}
}

// checkSource wants a secret in exactly one way; one that is not needed can be left out.
func (l *loaded) checkSource(path string, s secretSource, needed bool) {
	empty := false
	for suffix, there := range map[string]bool{"": !s.value.IsZero(), "_file": s.file != "", "_env": s.env != ""} {
		if l.set(path+suffix) && !there && !l.decoder.broken[path+suffix] {
			l.fail(path+suffix, "is empty; give it a value, or take it out")
			empty = true
		}
	}
	if given := s.given(); given > 1 || given == 0 && needed && !empty {
		section, key := cut(path)
		l.fail(section, "give exactly one of %s, %s_file and %s_env", key, key, key)
	}
}

func (l *loaded) checkExtensions(path string, names []string) {
	for i, name := range names {
		if !regexp.MustCompile("^[a-z0-9]+$").MatchString(name) {
			l.fail(fmt.Sprintf("%s[%d]", path, i), "wants the name of an attribute of CloudEvents: a-z and 0-9 only")
		}
	}
}

// checkOutcomes checks the statuses, and what is said of each.
func (l *loaded) checkOutcomes(path string, outcomes map[string]outcomeConfig) {
	status := regexp.MustCompile(`^[2-5]([0-9][0-9]|xx)$`)
	for _, key := range slices.Sorted(maps.Keys(outcomes)) {
		o, here := outcomes[key], join(path, key)
		if !status.MatchString(key) {
			l.fail(here, "wants a status, such as 404, or a class of them, such as 5xx")
		}
		l.checkOutcome(here, o)
	}
}

func (l *loaded) checkOutcome(path string, o outcomeConfig) {
	word := slices.Contains([]string{"done", "retry", "fail", "unknown"}, o.Kind)
	if !word && (o.Kind != "" || o.Retry < 1) {
		l.fail(path, "wants done, retry, fail, unknown, or {retry: 5} for a failure at the fifth attempt")
	}
}
