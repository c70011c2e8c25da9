package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// says is what an evidence tells, in lines.
func (e evidence) says() (lines []string) {
	for _, t := range e.Topics {
		for _, p := range t.Findings {
			lines = append(lines, t.Title+": "+p.Says+" ("+p.Rests+")")
		}
	}
	return lines
}

const evidenceConfig = `
destinations:
  billing: {webhook: {url: "https://h/", dedupe: 24h, outcomes: {"404": fail}}}
  once: {program: {command: [/bin/true], dedupe: never}}
  events: {kafka: {brokers: ["h:9092"], topic: t}}
routes:
  - {match: charge_order, to: billing, ordered: false, versions: [2], types: {charge_gift: {budget: 3, base: 2s}}}
  - {match: "once*", to: once, ordered: false}
  - {match: "*", to: events}
`

// TestEvidence holds what each topic tells of what was found.
func TestEvidence(t *testing.T) {
	t.Parallel()
	l := loadedOf(t, evidenceConfig)
	asked := func(op relay.Op, actor string, affected int64, dry bool) dialect.Operation {
		return dialect.Operation{Op: string(op), Actor: actor, Filter: "{}", DryRun: dry, AppliedAt: at(-time.Minute), Affected: &affected, RequestedAt: *at(-time.Hour)}
	}
	drill := func(agreed, differed int) dialect.Operation {
		return dialect.Operation{Op: "drill", Actor: "ann", RequestedAt: *at(-time.Hour), Filter: fmt.Sprintf(`{"destination":"billing","sent":3,"agreed":%d,"differed":%d}`, agreed, differed)}
	}
	f := reviewed{
		now: *at(0), instance: "shop",
		status: dialect.Status{
			Relays: []dialect.RelayStatus{{Name: "a", Version: "1", ConfigHash: l.config.hash()}, {Name: "b", Version: "2", ConfigHash: "other"}, {Name: "c", SeenFor: dialect.Age(time.Hour)}},
			Failed: []dialect.FailedCount{{RoutingKey: "charge_order", Type: "charge_order", Reason: "rejected", Messages: 3, Latest: dialect.Age(time.Minute)}},
		},
		kinds: dialect.Kinds{Kinds: []dialect.Kind{
			{RoutingKey: "charge_order", Type: "charge_order", SchemaVersion: 1, State: "failed", Messages: 3, ID: "m1", CreatedAt: *at(-time.Hour)},
			{RoutingKey: "x", Type: "x", SchemaVersion: 1, State: "pending", Messages: 3, ID: "m2", CreatedAt: *at(-time.Hour)},
		}},
		outcomes: []dialect.SendOutcome{
			{Outcome: "unknown", ErrorClass: new("timeout"), Sends: 4, Since: *at(-time.Hour)}, {Outcome: "lapse", Sends: 1, Since: *at(-2 * time.Hour)},
		},
		more: true,
		operations: []dialect.Operation{
			drill(3, 0), drill(2, 1), asked(relay.OpResolve, "ann", 2, false), asked(relay.OpResolve, "ann", 5, false),
			asked(relay.OpResolve, "bob", 9, true), asked(relay.OpPause, "bob", 1, false), asked(relay.OpReplay, "bob", 1, false),
		},
	}
	got := l.evidence(f).says()
	const attempts = " (outbox_attempt, since 2026-01-31T10:00:00Z, its last 10000)"
	for _, want := range []string{
		"Duplicates: The last drill of destination billing, 2026-01-31T11:00:00Z by ann: sent again 3 · agree 3 · differ 0 · unanswered 0. (outbox_operation, the last 1,000)",
		"Duplicates: Destination billing is said to remember a key for 24h: what may have taken effect is sent again within that time only, under the same key. (the configuration)",
		"Duplicates: Destination once remembers no key (dedupe: never): what may have taken effect is not sent again. (the configuration)",
		"Duplicates: Not known: whether the consumers of destination events drop repeats: each record has its key in the header id, and a broker tells no more. (the configuration)",
		"Duplicates: Repeats that had to be safe: 4 sends ended without a known outcome, 1 send lapsed with their relay's lease." + attempts,
		"Classification: unknown, timeout: 4 sends." + attempts,
		"Classification: Destination billing says otherwise of 404: fail. (the configuration)",
		"Bounds: Route charge_order, type charge_gift: at most 3 charged sends of 20s, between them 2s doubling to 1h of which half to all by chance: all tries lie within 3s to 1m6s, as long as the destination answers. (the configuration)",
		"Terminal failures: Unresolved, rejected: 3 messages of type charge_order under routing key charge_order, the last one 1m0s ago. (outbox, the last 10,000 that failed)",
		"Terminal failures: The oldest unresolved one of type charge_order, version 1, is m1, written 1h0m0s ago. (outbox, the last 10,000 that failed)",
		"Terminal failures: resolve by ann: 7 messages by 2 operations, the last at 2026-01-31T11:59:00Z. (outbox_operation, the last 1,000)",
		"Terminal failures: replay by bob: 1 message by 1 operation, the last at 2026-01-31T11:59:00Z. (outbox_operation, the last 1,000)",
		"Versions: 1 of 2 kinds of message that are there are accepted. (outbox and the configuration)",
		"Versions: Not accepted: routing key charge_order, type charge_order, version 1, failed: 3 messages, the oldest 1h0m0s ago; routes[0] accepts version 2. (outbox and the configuration)",
		"Relays: Relay a, version 1, is alive with this configuration. (outbox_relay)",
		"Relays: Relay b, version 2, is alive with ANOTHER configuration, other. (outbox_relay)",
		"Relays: The outbox belongs to instance shop: relays of another one, or of none, send nothing beside it. (outbox_control)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if all := strings.Join(got, "\n"); strings.Count(all, "The last drill") != 1 || strings.Contains(all, "bob: 9") || strings.Contains(all, "pause by") || t.Failed() {
		t.Errorf("it says:\n%s", all)
	}
}

// TestEvidenceOfNothing holds that what nobody knows is said to be so.
func TestEvidenceOfNothing(t *testing.T) {
	t.Parallel()
	env := sqliteOutbox(t)
	file := write(t, t.TempDir(), "outboxd.yaml", evidenceConfig)
	code, stdout, stderr := cli(t, env, "evidence", "-c", file, "-o", "json")
	var e evidence
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != exitOK || len(e.Topics) != 6 || time.Since(e.At.Time) > time.Hour {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	for _, want := range []string{
		"Duplicates: Not known: whether destination billing does: no drill of it is recorded; see outboxd drill --help.",
		"Classification: Not known: how failures are classified here: none is recorded.",
		"Terminal failures: No failed message waits for a person.", "Terminal failures: Nobody resolved, replayed, corrected or cancelled anything.",
		"Versions: 0 of 0 kinds", "Relays: No relay is alive.", "Relays: The outbox belongs to no instance",
	} {
		if !slices.ContainsFunc(e.says(), func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("missing: %s, in\n%s", want, strings.Join(e.says(), "\n"))
		}
	}
	if code, _, _ := cli(t, env, "evidence", "-c", file, "-o", "table"); code != exitUsage {
		t.Errorf("-o table: exit %d", code)
	}
}

// TestEvidenceOfADrill holds that the page has what the drill found, and neither payload nor secret.
func TestEvidenceOfADrill(t *testing.T) {
	t.Parallel()
	d := newDrilled(t, 2, "dedupe: 24h", "--remember", "0")
	d.drill()
	code, page, stderr := cli(t, d.env, "evidence", "-c", d.file)
	if code != exitOK || !strings.HasPrefix(page, "# Evidence of outboxd\n\n20") || !strings.Contains(page, "sent again 2 · agree 0 · differ 2 · unanswered 0") ||
		!strings.Contains(page, "\n## Bounds\n\n- Route charge_order: at most 20 charged sends of 20s") || strings.Contains(page, `"order"`) || strings.Contains(page, d.url) {
		t.Errorf("exit %d: %s%s", code, page, stderr)
	}
}
