package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestPolicies holds whose word counts for a type: its own, the longest start's, the route's, the destination's, the default.
func TestPolicies(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, `
destinations:
  billing: {webhook: {url: 'https://b.example', dedupe: 24h}, timeout: 12s}
  events: {stdout: }
routes:
  - match: charges
    to: billing
    ordered: false
    budget: 8
    cap: 10m
    versions: [1, 2]
    types:
      "*": {base: 3s}
      "refund_*": {budget: 9, timeout: 60s}
      "refund_part_*": {versions: []}
      refund_part_x: {cap: 5m}
      "refund_part_x*": {budget: 99}
  - {match: "*", to: events}
`)
	if err != nil {
		t.Fatal(err)
	}
	const s, m = time.Second, time.Minute
	one := []int{1, 2}
	for kind, want := range map[string]relay.Policy{
		"charge":          {Budget: 8, Timeout: 12 * s, Base: 3 * s, Cap: 10 * m, Versions: one},
		"refund_":         {Budget: 9, Timeout: 60 * s, Base: s, Cap: 10 * m, Versions: one},
		"refund_all":      {Budget: 9, Timeout: 60 * s, Base: s, Cap: 10 * m, Versions: one},
		"refund":          {Budget: 8, Timeout: 12 * s, Base: 3 * s, Cap: 10 * m, Versions: one},
		"refund_part_y":   {Budget: 8, Timeout: 12 * s, Base: s, Cap: 10 * m},
		"refund_part_x":   {Budget: 8, Timeout: 12 * s, Base: s, Cap: 5 * m, Versions: one},
		"refund_part_xyz": {Budget: 99, Timeout: 12 * s, Base: s, Cap: 10 * m, Versions: one},
	} {
		r := &l.config.Routes[0]
		if got := l.policy(r, r.policyKey(kind)); !samePolicy(got, want) {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
	r := &l.config.Routes[1]
	want := relay.Policy{Budget: relay.DefaultBudget, Timeout: relay.DefaultTimeout, Base: relay.DefaultBase, Cap: relay.DefaultCap}
	if got := l.policy(r, r.policyKey("charge")); !samePolicy(got, want) {
		t.Errorf("the defaults: %+v, want %+v", got, want)
	}
}

func samePolicy(a, b relay.Policy) bool {
	return a.Budget == b.Budget && a.Timeout == b.Timeout && a.Base == b.Base && a.Cap == b.Cap && a.Emit == b.Emit &&
		slices.Equal(a.Versions, b.Versions)
}

// TestHash holds that relays which send differently tell so, and that secrets and what is only of one relay tell nothing.
func TestHash(t *testing.T) {
	t.Parallel()
	const (
		before = "destinations: {a: {webhook: {url: 'https://a.example', dedupe: 24h"
		middle = "}}}\nroutes: [{match: a, to: a, ordered: false"
	)
	hash := func(text string) string {
		l, err := loadText(t, text)
		if err != nil {
			t.Fatalf("%s: %s", text, err)
		}
		return l.config.hash()
	}
	plain := hash(before + middle + "}]\n")
	for _, text := range []string{
		before + ", outcomes: {'404': fail}" + middle + "}]\n",
		before + ", outcomes: {'404': {retry: 2}}" + middle + "}]\n",
		before + ", allow_headers: []" + middle + "}]\n",
		before + ", remembers_failures: true" + middle + "}]\n",
		before + ", headers: {X-A: x}" + middle + "}]\n",
		before + "}, rate: 50/s" + middle[1:] + "}]\n",
		before + middle + ", emit: told}]\n",
		before + middle + ", emit: {type: told, aggregatetype: x}}]\n",
		before + middle + ", types: {x: {emit: told}}}]\n",
		before + middle + ", versions: [1]}]\n",
	} {
		if hash(text) == plain {
			t.Errorf("sends alike: %s", text)
		}
	}
	if hash(before+middle+", versions: [1], types: {x: {versions: []}}}]\n") == hash(before+middle+", versions: [1], types: {x: {}}}]\n") {
		t.Error("a type that takes every version sends as one that takes those of its route")
	}
	if hash("relay: {name: x}\nlog: {level: debug}\n"+before+middle+"}]\n") != plain {
		t.Error("what does not send differently tells relays apart")
	}
	for _, secret := range []string{"headers: {X-A: %}", "bearer: %", "basic: {username: u, password: %}", "oauth2: {token_url: 'https://a', client_id: c, client_secret: %}"} {
		with := func(value string) string {
			return hash(before + ", " + strings.Replace(secret, "%", value, 1) + middle + "}]\n")
		}
		if with("hunter2") != with("hunter3") {
			t.Errorf("a secret is part of it: %s", secret)
		}
	}
}
