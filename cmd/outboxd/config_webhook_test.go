package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/sink/webhook"
)

// TestWebhook_WholeConfiguration holds that each key reaches its field, and that none is forgotten.
func TestWebhook_WholeConfiguration(t *testing.T) {
	t.Parallel()
	l, err := load("testdata/config/good/whole.yaml", environment())
	if err != nil {
		t.Fatal(err)
	}
	env := environment("SHOP_BILLING_PASSWORD=y")
	sink := func(name string) webhook.Config {
		return l.config.Destinations[name].Webhook.sink(func(s secretSource) webhook.Source { return s.source(env) })
	}
	billing, payments := sink("billing"), sink("payments")
	for what, c := range map[string]struct {
		source webhook.Source
		want   string
	}{
		"static header":   {billing.Headers["X-Tenant"], "acme"},
		"header's file":   {billing.Headers["X-Api-Key"], "the key"},
		"password":        {billing.Basic.Password, "y"},
		"signing secrets": {billing.Secrets, "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\nwhsec_MTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4"},
		"client secret":   {payments.OAuth2.ClientSecret, "s"},
	} {
		if got, err := c.source(); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	billing.Headers, billing.Basic.Password, billing.Secrets, payments.OAuth2.ClientSecret = nil, nil, nil, nil
	want := webhook.Config{
		URL: "https://billing.internal/commands?shop=1", UserAgent: "outboxd/" + builtFrom().Version, ConnectTimeout: 3 * time.Second,
		PublicOnly: true, TLS: &webhook.TLS{ServerName: "billing.internal"}, KeyHeader: "X-Request-Id", KeyFormat: webhook.KeySFString,
		AllowHeaders: []string{"X-Region"}, Format: webhook.FormatCloudEvents,
		CloudEvents: webhook.CloudEvents{
			Source: "urn:shop", TypePrefix: "com.example.", DataSchema: "https://shop.example/{type}/{schema_version}", Subject: true,
			Extensions: []string{"tenant"},
		},
		Basic: &webhook.Basic{Username: "shop"},
		Outcomes: map[string]relay.Rule{
			"404": {Kind: relay.KindFail}, "418": {Kind: relay.KindRetry, Limit: 5}, "5xx": {Kind: relay.KindUnknown},
		},
		RemembersFailures: true, OnGonePause: true, Result: "/id",
	}
	if !reflect.DeepEqual(billing, want) {
		t.Errorf("got\n%+v\nwant\n%+v", billing, want)
	}
	wantOAuth2 := &webhook.OAuth2{
		TokenURL: "https://id.example/token", ClientID: "shop", Scopes: []string{"a", "b"},
		Params: map[string]string{"audience": "payments"}, InBody: true,
	}
	if !reflect.DeepEqual(payments.OAuth2, wantOAuth2) || !payments.FreshConnections || payments.AllowHeaders != nil {
		t.Errorf("got %+v", payments)
	}
}

// TestWebhook_Destination holds what the engine is told of a webhook: its memory of keys, and that width and rate are of all
// relays together.
func TestWebhook_Destination(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, `
destinations:
  a: {webhook: {url: 'https://a.example', dedupe: 24h}, rate: 600/m}
  b: {webhook: {url: 'https://b.example', dedupe: never}, width: 3, rate: 1800/h}
  c: {stdout: , rate: 50/s}
routes: [{match: a, to: a, ordered: false}]
`)
	if err != nil {
		t.Fatal(err)
	}
	rc, err := buildRelay(l, parts{env: environment(), log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeSinks(rc) }()
	for i, want := range []relay.Destination{
		{Width: webhook.DefaultWidth, Rate: 10, Shared: true, Dedupe: relay.Dedupe{Window: 24 * time.Hour}},
		{Width: 3, Rate: 0.5, Shared: true, Dedupe: relay.Dedupe{Never: true}},
		{Width: stdoutWidth, Rate: 50},
	} {
		got := rc.Destinations[i]
		if got.Width != want.Width || got.Rate != want.Rate || got.Shared != want.Shared || got.Dedupe != want.Dedupe {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestWebhook_SecretsAnew holds that a file is read whenever its secret is used.
func TestWebhook_SecretsAnew(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "token", "first\n")
	source := (&webhookConfig{BearerFile: file}).sources()["bearer"].source(environment())
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := source(); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := source(); errorText(err) != "cannot read "+file+": no such file or directory" {
		t.Error(err)
	}
}

// TestWebhook_SecretsElsewhere holds that only the start reads secrets: a command that looks at messages works where there
// are none.
func TestWebhook_SecretsElsewhere(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, `
destinations:
  a: {webhook: {url: 'https://a.example', dedupe: 24h, bearer_file: ./nowhere, secrets_env: NOWHERE, headers_file: {X-Key: ./nowhere},
    tls: {ca_file: ./nowhere, cert_file: ./nowhere, key_file: ./nowhere}}}
  b: {webhook: {url: 'https://b.example', dedupe: 24h, basic: {username: u, password_file: ./nowhere}}}
  c: {webhook: {url: 'https://c.example', dedupe: 24h, tls: {ca_file: ./nowhere}}}
  d: {webhook: {url: 'https://d.example', dedupe: 24h, bearer_file: ./nowhere, headers_file: {X-Key: ./nowhere}}}
routes: [{match: a, to: a, ordered: false}]
`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = buildRelay(l, parts{env: environment(), log: slog.New(slog.DiscardHandler)})
	if n := strings.Count(errorText(err), "nowhere: no such file") + strings.Count(errorText(err), "NOWHERE is empty or not there"); n != 10 {
		t.Errorf("not every file that is not there is one mistake: %v", err)
	}
}

func TestWebhook_Warnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		webhook, route string
		want           string // "": none
	}{
		"the defaults":                   {},
		"a short memory":                 {webhook: "dedupe: 1h", want: "routes[0]: its tries can go on for 8h15m, longer than the dedupe of its destination, 1h: what may have taken effect is then not sent again"},
		"a short memory of a type":       {webhook: "dedupe: 1h", route: "budget: 12, types: {a: {budget: 30}, b: {versions: [2]}}", want: "routes[0].types.a: its tries can go on for "},
		"a short memory, and few tries":  {webhook: "dedupe: 1h", route: "budget: 12"},
		"a long time-out of few tries":   {webhook: "dedupe: 1h", route: "budget: 12, timeout: 25s"},
		"time-outs that add up":          {webhook: "dedupe: 35m", route: "budget: 12, timeout: 25s", want: "its tries can go on for 39m, longer than"},
		"no memory has no window":        {webhook: "dedupe: never"},
		"no memory remembers failures":   {webhook: "dedupe: never, remembers_failures: true", want: "destinations.a.webhook.remembers_failures: a receiver that remembers no key cannot repeat a failure"},
		"bearer without TLS":             {webhook: "url: 'http://a.example', bearer: x", want: "destinations.a.webhook.url: shows a secret on the way"},
		"basic without TLS":              {webhook: "url: 'http://10.0.0.1:80', basic: {username: u, password: x}", want: "destinations.a.webhook.url: shows a secret on the way"},
		"a header without TLS":           {webhook: "url: 'http://a.example', headers: {authorization: x}", want: "destinations.a.webhook.url: shows a secret on the way"},
		"OAuth2 without TLS":             {webhook: "oauth2: {token_url: 'http://id.example', client_id: u, client_secret: x}", want: "destinations.a.webhook.oauth2.token_url: shows a secret on the way"},
		"bearer on this host":            {webhook: "url: 'http://127.0.0.1:80', bearer: x"},
		"bearer on this host, by name":   {webhook: "url: 'http://localhost:80', bearer: x"},
		"signatures without TLS":         {webhook: "url: 'http://a.example', secrets: [whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3]"},
		"a time-out longer than a stop":  {route: "timeout: 30s", want: "routes[0].timeout: longer than relay.stop_timeout"},
		"tries that are over in no time": {route: "budget: 3", want: "routes[0]: all its tries are over in less than 10 minutes"},
	} {
		text := c.webhook
		for key, value := range map[string]string{"url": "'https://a.example'", "dedupe": "24h"} {
			if !strings.HasPrefix(text, key+": ") {
				text = strings.TrimSuffix(text+", "+key+": "+value, ", ")
			}
		}
		text = strings.TrimPrefix(text, ", ")
		route := strings.TrimSuffix("match: a, to: a, ordered: false, "+c.route, ", ")
		l, err := loadText(t, "destinations: {a: {webhook: {"+text+"}}}\nroutes: [{"+route+"}]\n")
		if err != nil {
			t.Errorf("%s: %s", name, err)
		}
		got := strings.Join(l.warnings, "\n")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || len(l.warnings) > 1 {
			t.Errorf("%s: warned %q, want %q", name, got, c.want)
		}
	}
}

// TestWebhook_Environment holds the start without a file.
func TestWebhook_Environment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := write(t, dir, "token", "the token\n")
	needed := []string{"OUTBOXD_WEBHOOK_URL=https://a.example/x", "OUTBOXD_WEBHOOK_DEDUPE=24h", "OUTBOXD_WEBHOOK_ORDERED=false"}
	l, err := load("", environment(append(needed, "OUTBOXD_WEBHOOK_BEARER_FILE="+token, "OUTBOXD_WEBHOOK_SECRETS=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3, whsec_MTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4")...))
	if err != nil {
		t.Fatal(err)
	}
	w := l.config.Destinations["webhook"].Webhook
	if w.URL != "https://a.example/x" || w.Dedupe != "24h" || w.BearerFile != token || len(w.Secrets) != 2 || w.Secrets[1].Reveal() != "whsec_MTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4" {
		t.Errorf("%+v", w)
	}
	if r := l.config.Routes[0]; r.Match != "*" || r.To != "webhook" || r.Ordered {
		t.Errorf("%+v", r)
	}
	if got := l.origin("destinations.webhook.webhook.dedupe"); got != "environment OUTBOXD_WEBHOOK_DEDUPE" {
		t.Errorf("dedupe has its origin in %s", got)
	}
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"enough":         {env: needed},
		"no memory":      {env: []string{needed[0], "OUTBOXD_WEBHOOK_DEDUPE=never", needed[2]}},
		"no dedupe":      {env: []string{needed[0], needed[2]}, want: "OUTBOXD_WEBHOOK_DEDUPE: it has no default: say how long the receiver remembers an Idempotency-Key, such as 24h, or never"},
		"no ordered":     {env: needed[:2:2], want: "OUTBOXD_WEBHOOK_ORDERED: it has no default: say false, and messages of one aggregateid may overtake each other"},
		"ordered":        {env: append(needed[:2:2], "OUTBOXD_WEBHOOK_ORDERED=true"), want: "routes[0].ordered: order per key comes in a later release; take ordered out, or say false (it comes from the environment OUTBOXD_WEBHOOK_ORDERED)"},
		"no boolean":     {env: append(needed[:2:2], "OUTBOXD_WEBHOOK_ORDERED=hunter2"), want: "OUTBOXD_WEBHOOK_ORDERED: wants true or false"},
		"no duration":    {env: []string{needed[0], "OUTBOXD_WEBHOOK_DEDUPE=hunter2", needed[2]}, want: "destinations.webhook.webhook.dedupe: wants how long the receiver remembers an Idempotency-Key, such as 24h, and at least 1s; or never (it comes from the environment OUTBOXD_WEBHOOK_DEDUPE)"},
		"no URL":         {env: needed[1:], want: "OUTBOXD_WEBHOOK_DEDUPE: it needs OUTBOXD_WEBHOOK_URL beside it"},
		"a bearer alone": {env: []string{"OUTBOXD_WEBHOOK_BEARER=hunter2"}, want: "OUTBOXD_WEBHOOK_BEARER: it needs OUTBOXD_WEBHOOK_URL beside it"},
		"two bearers":    {env: append(needed[:3:3], "OUTBOXD_WEBHOOK_BEARER=hunter2", "OUTBOXD_WEBHOOK_BEARER_FILE="+token), want: "destinations.webhook.webhook: give exactly one of bearer, bearer_file and bearer_env"},
		"no such file":   {env: append(needed[:3:3], "OUTBOXD_WEBHOOK_SECRETS_FILE="+filepath.Join(dir, "none")), want: "destinations.webhook.webhook.secrets_file: cannot read " + filepath.Join(dir, "none") + ": no such file or directory (it comes from the environment OUTBOXD_WEBHOOK_SECRETS_FILE)"},
		"Kafka, too":     {env: append(needed[:3:3], "OUTBOXD_KAFKA_BROKERS=k:1"), want: "OUTBOXD_KAFKA_BROKERS: OUTBOXD_WEBHOOK_URL is set too, and only one destination is made of the environment; unset one of them, or name both in a file"},
		"destinations, too": {
			env:  append(needed[:3:3], "OUTBOXD_CONFIG=testdata/config/good/whole.yaml"),
			want: "OUTBOXD_WEBHOOK_URL: it makes a destination and a route only where the file has none; unset it and OUTBOXD_WEBHOOK_DEDUPE, OUTBOXD_WEBHOOK_ORDERED, or take destinations and routes out of the file",
		},
	} {
		code, _, stderr := cli(t, environment(append(c.env, "DATABASE_URL=postgres://h/d")...), "config", "validate")
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if want := orElse(c.want, "the configuration is good"); strings.TrimPrefix(lines[len(lines)-1], "outboxd: ") != want ||
			(code == exitOK) != (c.want == "") || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
}

// TestWebhook_Shown holds that what config show prints is read as it was, but for the secrets.
func TestWebhook_Shown(t *testing.T) {
	t.Parallel()
	const file = "testdata/config/good/whole.yaml"
	before, err := load(file, environment())
	if err != nil {
		t.Fatal(err)
	}
	code, shown, stderr := cli(t, environment("OUTBOXD_CONFIG="+file), "config", "show")
	if code != exitOK {
		t.Fatal(stderr)
	}
	after, _ := loadText(t, shown) // masks are no signing secrets
	if after.config.hash() != before.config.hash() || strings.Contains(shown, "acme") || strings.Contains(shown, "whsec_") || strings.Contains(shown, "audience: payments") {
		t.Errorf("%s shows\n%s", file, shown)
	}
	_, resolved, _ := cli(t, environment("OUTBOXD_CONFIG="+file), "config", "show", "--resolved", "-o", "jsonl")
	for _, want := range []string{
		`{"key":"destinations.billing.webhook.outcomes.418","value":"{retry: 5}","origin":"` + file + `:`,
		`{"key":"destinations.billing.webhook.outcomes.5xx","value":"unknown","origin":"` + file + `:`,
		`{"key":"destinations.billing.webhook.headers.X-Tenant","value":"<secret>","origin":"` + file + `:`,
		`{"key":"destinations.payments.webhook.oauth2.params.audience","value":"<secret>","origin":"` + file + `:`,
		`{"key":"destinations.billing.webhook.secrets[1]","value":"<secret>","origin":"` + file + `:`,
		`{"key":"destinations.billing.rate","value":"600/m","origin":"` + file + `:`,
		`{"key":"routes[2].emit","value":"charge_result","origin":"` + file + `:`,
		`{"key":"routes[2].types.refund.emit","value":"{type: refunded, aggregatetype: audit.results}","origin":"` + file + `:`,
	} {
		if !strings.Contains(resolved, want) {
			t.Errorf("no %s in\n%s", want, resolved)
		}
	}
}
