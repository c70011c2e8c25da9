package webhook

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// TestValidate holds the words about each mistake. What is secret in them is always hunter2.
func TestValidate(t *testing.T) {
	t.Parallel()
	const url = "webhook.url: "
	secret := is("hunter2")
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"good":         {func(*Config) {}, ""},
		"TLS":          {func(c *Config) { c.URL = "https://h:8443/a?b=c" }, ""},
		"no URL":       {func(c *Config) { c.URL = "" }, url + "is empty; name where messages are posted, such as https://billing.internal/commands"},
		"no scheme":    {func(c *Config) { c.URL = "hunter2" }, url + "is no URL such as https://billing.internal/commands"},
		"other scheme": {func(c *Config) { c.URL = "ftp://hunter2" }, url + "is no URL such as https://billing.internal/commands"},
		"no host":      {func(c *Config) { c.URL = "http:///hunter2" }, url + "is no URL such as https://billing.internal/commands"},
		"not parsed":   {func(c *Config) { c.URL = "http://h:hunter2" }, url + "is no URL such as https://billing.internal/commands"},
		"password":     {func(c *Config) { c.URL = "http://u:hunter2@h" }, url + "has a user or a password in it, which would not be sent; take them out"},
		"fragment":     {func(c *Config) { c.URL = "http://h/#hunter2" }, url + "has a part behind #, which would not be sent; take it out"},
		"port 0":       {func(c *Config) { c.URL = "http://h:0/hunter2" }, url + "has a port that there is not; name one from 1 to 65535, or none"},
		"port, large":  {func(c *Config) { c.URL = "http://h:65536" }, url + "has a port that there is not; name one from 1 to 65535, or none"},
		"port, last":   {func(c *Config) { c.URL = "http://h:65535" }, ""},
		"port, none":   {func(c *Config) { c.URL = "http://h:" }, ""},
		"width":        {func(c *Config) { c.Width = -1 }, "webhook.width: -1 is negative"},
		"timeout":      {func(c *Config) { c.Timeout = -1 }, "webhook.timeout: -1ns is negative"},
		"connecting":   {func(c *Config) { c.ConnectTimeout = -1 }, "webhook.connect_timeout: -1ns is negative"},
		"both at once": {func(c *Config) { c.Width, c.Timeout = -1, -1 }, "webhook.width: -1 is negative\nwebhook.timeout: -1ns is negative"},

		"key header":         {func(c *Config) { c.KeyHeader = "X Y" }, `webhook.key_header: "X Y" is no name of a header`},
		"key header of ours": {func(c *Config) { c.KeyHeader = "Webhook-Id" }, "webhook.key_header: Webhook-Id is set by the relay or by HTTP itself; name another header"},
		"key format":         {func(c *Config) { c.KeyFormat = "x" }, `webhook.key_format: "x" is neither bare nor sf-string`},
		"header":             {func(c *Config) { c.Headers = map[string]Source{"X:": secret} }, `webhook.headers: "X:" is no name of a header`},
		"header of ours":     {func(c *Config) { c.Headers = map[string]Source{"Host": secret} }, "webhook.headers.Host: is set by the relay or by HTTP itself; take it out"},
		"header of the key":  {func(c *Config) { c.Headers = map[string]Source{"idempotency-KEY": secret} }, "webhook.headers.idempotency-KEY: is set by the relay or by HTTP itself; take it out"},
		"header, no value":   {func(c *Config) { c.Headers = map[string]Source{"X": nil} }, "webhook.headers.X: has no value"},
		"allowed":            {func(c *Config) { c.AllowHeaders = []string{"X", "tracestate"} }, ""},
		"allowed, no name":   {func(c *Config) { c.AllowHeaders = []string{""} }, `webhook.allow_headers: "" is no name of a header`},
		"allowed and ours":   {func(c *Config) { c.AllowHeaders = []string{"Cookie"} }, "webhook.allow_headers: Cookie is never taken from a row; take it out"},
		"two ways":           {func(c *Config) { c.Bearer, c.Basic = secret, &Basic{"me", secret} }, "webhook.bearer: a request has one way of authentication; keep one of bearer, basic"},
		"a way and a header": {func(c *Config) { c.Bearer, c.Headers = secret, map[string]Source{"authorization": secret} }, "webhook.bearer: a request has one way of authentication; keep one of bearer, headers.authorization"},
		"basic":              {func(c *Config) { c.Basic = &Basic{} }, "webhook.basic.username: is empty; say who the password is of\nwebhook.basic: has no password"},
		"basic, colon":       {func(c *Config) { c.Basic = &Basic{"a:hunter2", secret} }, "webhook.basic.username: cannot have a colon or a control character in it (RFC 7617)"},
		"oauth2":             {func(c *Config) { c.OAuth2 = &OAuth2{} }, "webhook.oauth2.token_url: is empty; name where tokens come from, such as https://login.internal/token\nwebhook.oauth2.client_id: is empty; say who the secret is of\nwebhook.oauth2: has no client_secret"},
		"oauth2, URL":        {func(c *Config) { c.OAuth2 = &OAuth2{TokenURL: "hunter2", ClientID: "me", ClientSecret: secret} }, "webhook.oauth2.token_url: is no URL such as https://login.internal/token"},
		"oauth2, port": {func(c *Config) {
			c.OAuth2 = &OAuth2{TokenURL: "http://h:70000", ClientID: "me", ClientSecret: secret}
		}, "webhook.oauth2.token_url: has a port that there is not; name one from 1 to 65535, or none"},
		"oauth2, params": {func(c *Config) {
			c.OAuth2 = &OAuth2{"http://h", "me", secret, nil, map[string]string{"scope": "x"}, false}
		}, "webhook.oauth2.params.scope: is set by the relay; take it out"},
		"secrets":           {func(c *Config) { c.Secrets = secret }, "webhook.secrets: secret 1 is not whsec_ and base64 of 24 to 64 bytes"},
		"tls, half a pair":  {func(c *Config) { c.URL, c.TLS = "https://h", &TLS{CertFile: "x"} }, "webhook.tls: cert_file and key_file go together; set both or none"},
		"tls without TLS":   {func(c *Config) { c.TLS = &TLS{} }, "webhook.tls: has no effect on an http:// url; make it https, or take tls out"},
		"format":            {func(c *Config) { c.Format = "x" }, `webhook.format: "x" is neither plain nor cloudevents`},
		"events":            {func(c *Config) { c.Format, c.CloudEvents.Source = "cloudevents", "urn:x" }, ""},
		"events, plain":     {func(c *Config) { c.CloudEvents.Subject = true }, "webhook.cloudevents: has no effect without format: cloudevents"},
		"events, no source": {func(c *Config) { c.Format = "cloudevents" }, "webhook.cloudevents.source: wants a URI that says who sends, such as urn:shop:orders"},
		"events, dataschema": {func(c *Config) {
			c.Format, c.CloudEvents = "cloudevents", CloudEvents{Source: "x", DataSchema: "{type}"}
		}, "webhook.cloudevents.dataschema: wants a URI, such as https://schemas.internal/{type}/{schema_version}"},
		"events, extension": {func(c *Config) {
			c.Format, c.CloudEvents = "cloudevents", CloudEvents{Source: "x", Extensions: []string{"X-Y"}}
		}, `webhook.cloudevents.extensions: "X-Y" is no name of an attribute: a-z and 0-9 only`},
		"events, attribute": {func(c *Config) {
			c.Format, c.CloudEvents = "cloudevents", CloudEvents{Source: "x", Extensions: []string{"sequence"}}
		}, `webhook.cloudevents.extensions: "sequence" is set by the relay; take it out`},
		"result":        {func(c *Config) { c.Result = "id" }, `webhook.result: wants a JSON pointer, which begins with "/", such as /id`},
		"result, tilde": {func(c *Config) { c.Result = "/a~2" }, "webhook.result: has a ~ that is neither ~0 (for ~) nor ~1 (for /)"},
		"outcomes": {func(c *Config) {
			c.Outcomes = map[string]relay.Rule{"404": {Kind: "done"}, "5xx": {Kind: "retry", Limit: 3}}
		}, ""},
		"outcomes, no status": {func(c *Config) { c.Outcomes = map[string]relay.Rule{"1xx": {Kind: "done"}, "600": {Kind: "done"}} }, "webhook.outcomes: \"1xx\" is neither a status such as \"404\" nor a class such as \"5xx\"\nwebhook.outcomes: \"600\" is neither a status such as \"404\" nor a class such as \"5xx\""},
		"outcomes, no kind":   {func(c *Config) { c.Outcomes = map[string]relay.Rule{"404": {Kind: "unsent"}} }, `webhook.outcomes.404: "unsent" is none of done, retry, fail and unknown`},
		"gone, retried": {func(c *Config) {
			c.OnGonePause, c.Outcomes = true, map[string]relay.Rule{"410": {Kind: "retry", Limit: 3}, "4xx": {Kind: "fail"}}
		}, ""},
		"gone, otherwise":    {func(c *Config) { c.OnGonePause, c.Outcomes = true, map[string]relay.Rule{"410": {Kind: "done"}} }, "webhook.on_gone: pause wants 410 to be a retry, and outcomes.410 has another outcome for it; take one of them out"},
		"gone, by its class": {func(c *Config) { c.OnGonePause, c.Outcomes = true, map[string]relay.Rule{"4xx": {Kind: "fail"}} }, "webhook.on_gone: pause wants 410 to be a retry, and outcomes.4xx has another outcome for it; take one of them out"},
		"outcomes, limit": {func(c *Config) {
			c.Outcomes = map[string]relay.Rule{"404": {Kind: "fail", Limit: 3}, "4xx": {Kind: "retry", Limit: -1}}
		}, "webhook.outcomes.404: fail ends at once and has no number of attempts\nwebhook.outcomes.4xx: -1 attempts are negative"},
	} {
		cfg := Config{URL: "http://h"}
		c.change(&cfg)
		if got := textOf(cfg.Validate()); got != c.want || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if _, err := New(cfg, slog.New(slog.DiscardHandler)); textOf(err) != c.want {
			t.Errorf("%s: New says %v", name, err)
		}
	}
}

// TestTakenNames holds which headers the wire key cannot go in, in whatever case.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"traceparent", "tracestate", "Accept-Encoding", "Accept", "Content-Type", "Content-Encoding", "Content-Length", "Nats-Msg-Id",
		"Authorization", "Cookie", "Host", "User-Agent", "Expect", "Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
		"TE", "Trailer", "Transfer-Encoding", "Upgrade", "ce-id", "ce_id", "cloudEvents-id", "webhook-id", "Outbox-Type",
	} {
		for _, spelt := range []string{name, strings.ToUpper(name), strings.ToLower(name)} {
			want := "webhook.key_header: " + spelt + " is set by the relay or by HTTP itself; name another header"
			if got := textOf(Config{URL: "http://h", KeyHeader: spelt}.Validate()); got != want {
				t.Errorf("%s: %q", spelt, got)
			}
		}
	}
	for _, name := range []string{"X-Request-Id", "Idempotency-Key", "PayPal-Request-Id", "x-idempotency"} {
		if err := (Config{URL: "http://h", KeyHeader: name}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoProxy holds that the environment has no say in where a message goes.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	s := newSink(t, "http://h", nil)
	if s.transport.Proxy != nil || s.transport.MaxIdleConnsPerHost != DefaultWidth || !s.transport.DisableCompression {
		t.Errorf("%+v", s.transport)
	}
}
