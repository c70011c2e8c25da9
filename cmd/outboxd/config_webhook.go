package main

import (
	"strconv"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// window is how long a receiver remembers a wire key, as the file says it: a duration, or never.
type window string

const never window = "never"

func (window) wants() string {
	return "how long the receiver remembers an Idempotency-Key, such as 24h, and at least 1s; or never"
}

// webhookConfig says how commands are executed over HTTP. Of bearer, basic and oauth2 at most one is given.
type webhookConfig struct {
	URL               string                   `yaml:"url,omitempty"`
	ConnectTimeout    time.Duration            `yaml:"connect_timeout,omitempty"`
	PublicOnly        bool                     `yaml:"public_only,omitempty"`
	TLS               *webhookTLSConfig        `yaml:"tls,omitempty"`
	Dedupe            window                   `yaml:"dedupe,omitempty"` // how long the receiver remembers a wire key, or never
	RemembersFailures bool                     `yaml:"remembers_failures,omitempty"`
	KeyHeader         string                   `yaml:"key_header,omitempty"`
	KeyFormat         string                   `yaml:"key_format,omitempty"`
	Headers           map[string]Secret        `yaml:"headers,omitempty"`
	HeadersFile       map[string]string        `yaml:"headers_file,omitempty"`
	AllowHeaders      []string                 `yaml:"allow_headers,omitzero"` // empty, but there: none of the row's
	Bearer            Secret                   `yaml:"bearer,omitempty"`
	BearerFile        string                   `yaml:"bearer_file,omitempty"`
	BearerEnv         string                   `yaml:"bearer_env,omitempty"`
	Basic             *basicConfig             `yaml:"basic,omitempty"`
	OAuth2            *oauth2Config            `yaml:"oauth2,omitempty"`
	Secrets           []Secret                 `yaml:"secrets,omitempty"`
	SecretsFile       string                   `yaml:"secrets_file,omitempty"`
	SecretsEnv        string                   `yaml:"secrets_env,omitempty"`
	Format            string                   `yaml:"format,omitempty"`
	CloudEvents       *cloudEventsConfig       `yaml:"cloudevents,omitempty"`
	Result            string                   `yaml:"result,omitempty"`
	Outcomes          map[string]outcomeConfig `yaml:"outcomes,omitempty"`
	OnGone            string                   `yaml:"on_gone,omitempty"`
}

type webhookTLSConfig struct {
	CAFile     string `yaml:"ca_file,omitempty"`
	CertFile   string `yaml:"cert_file,omitempty"`
	KeyFile    string `yaml:"key_file,omitempty"`
	ServerName string `yaml:"server_name,omitempty"`
}

type basicConfig struct {
	Username     string `yaml:"username,omitempty"`
	Password     Secret `yaml:"password,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	PasswordEnv  string `yaml:"password_env,omitempty"`
}

type oauth2Config struct {
	TokenURL         string            `yaml:"token_url,omitempty"`
	ClientID         string            `yaml:"client_id,omitempty"`
	ClientSecret     Secret            `yaml:"client_secret,omitempty"`
	ClientSecretFile string            `yaml:"client_secret_file,omitempty"`
	ClientSecretEnv  string            `yaml:"client_secret_env,omitempty"`
	Scopes           []string          `yaml:"scopes,omitempty"`
	Params           map[string]Secret `yaml:"params,omitempty"`
	InBody           bool              `yaml:"in_body,omitempty"` // id and secret in the body, not as Basic
}

type cloudEventsConfig struct {
	Source     string   `yaml:"source,omitempty"`
	TypePrefix string   `yaml:"type_prefix,omitempty"`
	DataSchema string   `yaml:"dataschema,omitempty"`
	Subject    bool     `yaml:"subject,omitempty"`
	Extensions []string `yaml:"extensions,omitempty"`
}

// outcomeConfig says what a status or an exit code means: one of four words, or retry with a number of attempts at which it ends.
type outcomeConfig struct {
	Kind  string `yaml:"-"`
	Retry int    `yaml:"retry,omitempty"`
}

func (o *outcomeConfig) word() *string { return &o.Kind }

// String is short where the file can be.
func (o outcomeConfig) String() string {
	if o.Kind != "" {
		return o.Kind
	}
	return "{retry: " + strconv.Itoa(o.Retry) + "}"
}

// MarshalYAML writes what the file can have.
func (o outcomeConfig) MarshalYAML() (any, error) { //nolint:unparam // yaml.InterfaceMarshaler
	if o.Kind != "" {
		return o.Kind, nil
	}
	return map[string]int{"retry": o.Retry}, nil
}

// rules are outcomes as a sink takes them.
func rules(outcomes map[string]outcomeConfig) map[string]relay.Rule {
	all := map[string]relay.Rule{}
	for answer, o := range outcomes {
		all[answer] = relay.Rule{Kind: orElse(relay.Kind(o.Kind), relay.KindRetry), Limit: o.Retry}
	}
	return all
}

func (w *webhookConfig) dedupe() relay.Dedupe { return w.Dedupe.dedupe() }

// dedupe is how long a repeat is safe.
func (w window) dedupe() relay.Dedupe {
	if w == never {
		return relay.Dedupe{Never: true}
	}
	span, err := time.ParseDuration(string(w))
	if err != nil {
		return relay.Dedupe{} // checkMemory has refused it
	}
	return relay.Dedupe{Window: span}
}
