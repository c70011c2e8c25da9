package webhook

import (
	"log/slog"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"good":         {func(*Config) {}, ""},
		"TLS":          {func(c *Config) { c.URL = "https://h:8443/a?b=c" }, ""},
		"no URL":       {func(c *Config) { c.URL = "" }, "webhook.url: is empty; name where messages are posted, such as https://billing.internal/commands"},
		"no scheme":    {func(c *Config) { c.URL = "hunter2" }, "webhook.url: is no URL such as https://billing.internal/commands"},
		"other scheme": {func(c *Config) { c.URL = "ftp://hunter2" }, "webhook.url: is no URL such as https://billing.internal/commands"},
		"no host":      {func(c *Config) { c.URL = "http:///hunter2" }, "webhook.url: is no URL such as https://billing.internal/commands"},
		"not parsed":   {func(c *Config) { c.URL = "http://h:hunter2" }, "webhook.url: is no URL such as https://billing.internal/commands"},
		"password":     {func(c *Config) { c.URL = "http://u:hunter2@h" }, "webhook.url: has a user or a password in it, which would not be sent; take them out"},
		"fragment":     {func(c *Config) { c.URL = "http://h/#hunter2" }, "webhook.url: has a part behind #, which would not be sent; take it out"},
		"width":        {func(c *Config) { c.Width = -1 }, "webhook.width: -1 is negative"},
		"timeout":      {func(c *Config) { c.Timeout = -1 }, "webhook.timeout: -1ns is negative"},
		"both at once": {func(c *Config) { c.Width, c.Timeout = -1, -1 }, "webhook.width: -1 is negative\nwebhook.timeout: -1ns is negative"},
	} {
		cfg := Config{URL: "http://h"}
		c.change(&cfg)
		_, err := New(cfg, slog.New(slog.DiscardHandler))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
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
