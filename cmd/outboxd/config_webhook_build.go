package main

import (
	"maps"
	"strings"

	"github.com/outboxd/outboxd/relay/sink/webhook"
)

// sources are the secrets that are given in one of three ways, by the key that they have without _file or _env.
func (w *webhookConfig) sources() map[string]secretSource {
	all := map[string]secretSource{
		"bearer":  {w.Bearer, w.BearerFile, w.BearerEnv},
		"secrets": {lines(w.Secrets), w.SecretsFile, w.SecretsEnv},
	}
	if b := w.Basic; b != nil {
		all["basic.password"] = secretSource{b.Password, b.PasswordFile, b.PasswordEnv}
	}
	if o := w.OAuth2; o != nil {
		all["oauth2.client_secret"] = secretSource{o.ClientSecret, o.ClientSecretFile, o.ClientSecretEnv}
	}
	return all
}

// lines makes one secret of several.
func lines(list []Secret) Secret {
	var all []string
	for _, s := range list {
		all = append(all, s.Reveal())
	}
	return Secret{strings.Join(all, "\n")}
}

// sink is the sink's configuration, all but width and time-out. read makes a Source of where a secret is; nil is none.
func (w *webhookConfig) sink(read func(secretSource) webhook.Source) webhook.Config {
	secrets := w.sources()
	c := webhook.Config{
		URL: w.URL, UserAgent: "outboxd/" + builtFrom().Version, ConnectTimeout: w.ConnectTimeout, PublicOnly: w.PublicOnly,
		FreshConnections: w.dedupe().Never, RemembersFailures: w.RemembersFailures, OnGonePause: w.OnGone == "pause",
		KeyHeader: w.KeyHeader, KeyFormat: w.KeyFormat, AllowHeaders: w.AllowHeaders, Format: w.Format, Result: w.Result,
		Bearer: read(secrets["bearer"]), Secrets: read(secrets["secrets"]),
		Headers: map[string]webhook.Source{}, Outcomes: rules(w.Outcomes),
	}
	for name, value := range w.Headers {
		c.Headers[name] = read(secretSource{value: value})
	}
	for name, file := range w.HeadersFile {
		c.Headers[name] = read(secretSource{file: file})
	}
	maps.DeleteFunc(c.Headers, func(_ string, s webhook.Source) bool { return s == nil }) // checkHeaders has refused it
	if b := w.Basic; b != nil {
		c.Basic = &webhook.Basic{Username: b.Username, Password: read(secrets["basic.password"])}
	}
	if o := w.OAuth2; o != nil {
		c.OAuth2 = &webhook.OAuth2{
			TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: read(secrets["oauth2.client_secret"]),
			Scopes: o.Scopes, Params: map[string]string{}, InBody: o.InBody,
		}
		for name, value := range o.Params {
			c.OAuth2.Params[name] = value.Reveal()
		}
	}
	if t := w.TLS; t != nil {
		c.TLS = &webhook.TLS{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName}
	}
	if e := w.CloudEvents; e != nil {
		c.CloudEvents = webhook.CloudEvents{
			Source: e.Source, TypePrefix: e.TypePrefix, DataSchema: e.DataSchema, Subject: e.Subject, Extensions: e.Extensions,
		}
	}
	return c
}

// webhookSink makes the sink of a destination. Its secrets are read once to see that they are there, and then whenever they
// are used.
func (l *loaded) webhookSink(name string, p parts) (*webhook.Sink, error) {
	d, path := l.config.Destinations[name], join("destinations", name)+".webhook"
	c := d.Webhook.sink(func(s secretSource) webhook.Source { return s.source(p.env) })
	c.Width, c.Timeout = d.Width, l.longestTimeout(name)
	known := len(l.problems)
	l.readSecrets(path, d.Webhook, p.env)
	sink, err := webhook.New(c, p.log)
	if err != nil {
		if l.failEach(path, "webhook.", err); len(l.problems) == known {
			l.fail(path, "%s", err)
		}
		return nil, &configError{file: l.file, problems: l.problems}
	}
	return sink, nil
}

// readSecrets finds every secret that cannot be read.
func (l *loaded) readSecrets(path string, w *webhookConfig, env lookup) {
	for key, source := range w.sources() {
		if _, err := source.read(env); err != nil {
			l.fail(path+"."+source.key(key), "%s", err)
		}
	}
	for name, file := range w.HeadersFile {
		if _, err := (secretSource{file: file}).read(env); err != nil {
			l.fail(join(path+".headers_file", name), "%s", err)
		}
	}
}
