package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// billing is a file with a webhook, a stdout and some routes.
func billing(routes string) string {
	return "destinations:\n  billing: {webhook: {url: 'https://b.example/x', dedupe: 24h}}\n  events: {stdout: }\nroutes:\n" + routes
}

// loadText reads a configuration from a file of its own.
func loadText(t *testing.T, text string) (*loaded, error) {
	t.Helper()
	return load(write(t, t.TempDir(), "outboxd.yaml", text), environment())
}

// TestEmit_Inherited: a type's own emit, else that of its route; an empty one takes it back.
func TestEmit_Inherited(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, billing(`
  - match: charges
    to: billing
    ordered: false
    emit: charge_result
    types:
      refund: {emit: {type: refunded, aggregatetype: results}}
      "refund_*": {budget: 30}
      ping: {emit: ""}
  - {match: quiet, to: billing, ordered: false, types: {loud: {emit: charge_result}}}
  - {match: "*", to: events}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		route int
		kind  string
		want  relay.Emit
	}{
		{0, "charge", relay.Emit{Type: "charge_result"}},
		{0, "refund", relay.Emit{Type: "refunded", AggregateType: "results"}},
		{0, "refund_part", relay.Emit{Type: "charge_result"}},
		{0, "ping", relay.Emit{}},
		{1, "loud", relay.Emit{Type: "charge_result"}},
		{1, "charge", relay.Emit{}},
	} {
		r := &l.config.Routes[c.route]
		if got := l.policy(r, r.policyKey(c.kind)).Emit; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.kind, got, c.want)
		}
	}
	if len(l.warnings) > 0 {
		t.Errorf("warned: %q", l.warnings)
	}
}

// TestEmit_Refused: what an emitted message would come back to is a mistake, and what would only wait draws a warning.
func TestEmit_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		routes string
		wrong  string
		warned string
	}{
		"its own route": {
			routes: "  - {match: '*', to: billing, ordered: false, emit: told}\n",
			wrong:  "routes[0].emit: told would go to billing, the destination that it tells of; add a route before routes[0] that takes it elsewhere",
		},
		"its own destination by another route": {
			routes: "  - {match: a, to: billing, ordered: false, emit: told}\n  - {match: told, to: billing, ordered: false}\n",
			wrong:  "routes[0].emit: told would go to billing",
		},
		"its own destination by aggregatetype": {
			routes: "  - {match: a, to: billing, ordered: false, types: {x: {emit: {type: told, aggregatetype: a}}}}\n  - {match: told, to: events}\n",
			wrong:  "routes[0].types.x.emit: told would go to billing",
		},
		"a circle of two": {
			routes: "  - {match: a, to: billing, ordered: false, emit: b}\n  - {match: b, to: events, emit: a}\n",
			wrong:  "routes[0].emit: closes a circle, which would never end: b -> a -> b; take one of them out",
		},
		"a circle behind a way in": {
			routes: "  - {match: in, to: kafka, emit: a}\n  - {match: a, to: billing, ordered: false, emit: b}\n  - {match: b, to: events, emit: a}\n",
			wrong:  "routes[1].emit: closes a circle, which would never end: b -> a -> b",
		},
		"a circle over types": {
			routes: "  - {match: a, to: billing, ordered: false, emit: {type: b1, aggregatetype: b}}\n" +
				"  - {match: b, to: events, types: {'b*': {emit: {type: c, aggregatetype: k}}}}\n  - {match: k, to: kafka, emit: a}\n",
			wrong: "closes a circle, which would never end: b1 -> c -> a -> b1",
		},
		"no circle, since the type takes it back": {
			routes: "  - {match: a, to: billing, ordered: false, emit: b}\n  - {match: b, to: events, emit: a, types: {b: {emit: ''}}}\n",
		},
		"no circle, since another type comes back": {
			routes: "  - {match: a, to: billing, ordered: false, types: {x: {emit: b}}}\n  - {match: b, to: events, emit: a}\n",
		},
		"no route": {
			routes: "  - {match: a, to: billing, ordered: false, emit: told}\n",
			warned: "routes[0].emit: no route takes told: it would wait; add one to routes",
		},
		"a version that is not accepted": {
			routes: "  - {match: a, to: billing, ordered: false, emit: told}\n  - {match: told, to: events, versions: [2, 3]}\n",
			warned: "routes[0].emit: told has schema_version 1, which routes[1] does not accept: it would wait",
		},
		"a chain": {
			routes: "  - {match: a, to: billing, ordered: false, emit: b}\n  - {match: b, to: events, emit: c}\n  - {match: c, to: kafka}\n",
		},
	} {
		text := strings.Replace(billing(c.routes), "destinations:\n", "destinations:\n  kafka: {kafka: {brokers: ['k:1'], topic: t}}\n", 1)
		l, err := loadText(t, text)
		if (err != nil) != (c.wrong != "") || !strings.Contains(errorText(err), c.wrong) || strings.Count(errorText(err), "circle") > 1 {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
		if c.warned != "" && !slices.Contains(l.warnings, c.warned) || c.warned == "" && c.wrong == "" && len(l.warnings) > 0 {
			t.Errorf("%s: warned %q, want %q", name, l.warnings, c.warned)
		}
	}
}

// TestEmit_Text: what the table would refuse is a mistake of the configuration.
func TestEmit_Text(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"charge_result": true, "Zahlung erfaßt": true, strings.Repeat("ß", 255): true,
		"": false, " x": false, "x\t": false, "x\x00": false, "a\nb": false, "\xff": false, strings.Repeat("x", 256): false,
	} {
		if tableText(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
