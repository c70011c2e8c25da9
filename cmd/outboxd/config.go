package main

import (
	"time"

	"github.com/outboxd/outboxd/relay"
	programsink "github.com/outboxd/outboxd/relay/sink/program"
	"github.com/outboxd/outboxd/relay/sink/webhook"
)

// config is the whole configuration. Every field is a key of the file; some can come from the environment too
// (config_env.go). The decoder reads the yaml tags, and so does `config show`.
type config struct {
	Database     databaseConfig               `yaml:"database,omitempty"`
	Instance     string                       `yaml:"instance,omitempty"` // of the application; an outbox of another one is left alone
	Relay        relayConfig                  `yaml:"relay,omitempty"`
	Retention    retentionConfig              `yaml:"retention,omitempty"`
	HTTP         httpConfig                   `yaml:"http,omitempty"`
	Log          logConfig                    `yaml:"log,omitempty"`
	Trace        traceConfig                  `yaml:"trace,omitempty"`
	Destinations map[string]destinationConfig `yaml:"destinations,omitempty"`
	Routes       []routeConfig                `yaml:"routes,omitempty"`
}

type databaseConfig struct {
	URL      Secret `yaml:"url,omitempty"`
	URLFile  string `yaml:"url_file,omitempty"`
	URLEnv   string `yaml:"url_env,omitempty"`
	Schema   string `yaml:"schema,omitempty"`   // empty: as the connection's search_path says
	Pooler   string `yaml:"pooler,omitempty"`   // transaction: no prepared statements and no state of a session
	Insecure bool   `yaml:"insecure,omitempty"` // no TLS although the server is not on this host
	Migrate  bool   `yaml:"migrate,omitempty"`  // run brings the schema up to date before it starts
}

func (d databaseConfig) source() secretSource { return secretSource{d.URL, d.URLFile, d.URLEnv} }

// urlKey is the path of the key that gives the URL.
func (d databaseConfig) urlKey() string { return d.source().key("database.url") }

type relayConfig struct {
	Name        string        `yaml:"name,omitempty"` // unique on the table; empty: one is made of the host's
	Lease       time.Duration `yaml:"lease,omitempty"`
	StopTimeout time.Duration `yaml:"stop_timeout,omitempty"`
	MaxActive   int           `yaml:"max_active,omitempty"` // relays at work on the table, the rest stand by; 0: all
}

type httpConfig struct {
	Listen string `yaml:"listen,omitempty"` // of health checks and metrics; "off" for none
}

type logConfig struct {
	Level  string `yaml:"level,omitempty"`  // debug, info, warn or error
	Format string `yaml:"format,omitempty"` // text, json, or auto: text on a terminal
}

// traceConfig says how spans stand to the trace of who wrote the message. Whether there are spans, the environment says.
type traceConfig struct {
	Parent string `yaml:"parent,omitempty"` // link, or child
}

// destinationConfig has exactly one kind, Kafka, Webhook, Program or Stdout.
type destinationConfig struct {
	Kafka   *kafkaConfig   `yaml:"kafka,omitempty"`
	Webhook *webhookConfig `yaml:"webhook,omitempty"`
	Program *programConfig `yaml:"program,omitempty"`
	Stdout  *stdoutConfig  `yaml:"stdout,omitempty"`
	Width   int            `yaml:"width,omitempty"`   // of a webhook or a program, of all relays together
	Rate    rate           `yaml:"rate,omitempty"`    // sends started a second, minute or hour: 50/s
	Timeout time.Duration  `yaml:"timeout,omitempty"` // of one send, where the route says nothing
	Breaker breakerConfig  `yaml:"breaker,omitempty"`
}

// kinds counts the kinds that are given.
func (d destinationConfig) kinds() (n int) {
	for _, given := range []bool{d.Kafka != nil, d.Webhook != nil, d.Program != nil, d.Stdout != nil} {
		if given {
			n++
		}
	}
	return n
}

// sendTimeout is of one send, where the route says nothing.
func (d destinationConfig) sendTimeout() time.Duration {
	switch {
	case d.Webhook != nil:
		return orElse(d.Timeout, webhook.DefaultTimeout)
	case d.Program != nil:
		return orElse(d.Timeout, programsink.DefaultTimeout)
	}
	return orElse(d.Timeout, relay.DefaultTimeout)
}

// dedupe is how long it is safe to repeat what may have taken effect there.
func (d destinationConfig) dedupe() relay.Dedupe {
	switch {
	case d.Webhook != nil:
		return d.Webhook.dedupe()
	case d.Program != nil:
		return d.Program.dedupe()
	}
	return relay.Dedupe{}
}

type stdoutConfig struct{}

type kafkaConfig struct {
	Brokers          []string    `yaml:"brokers,omitempty"`
	Topic            string      `yaml:"topic,omitempty"` // may hold {routing_key} and {type}
	TLS              *tlsConfig  `yaml:"tls,omitempty"`
	SASL             *saslConfig `yaml:"sasl,omitempty"`
	Insecure         bool        `yaml:"insecure,omitempty"` // permits what would show a secret on the way, or any certificate
	Version          string      `yaml:"version,omitempty"`
	ClientID         string      `yaml:"client_id,omitempty"`
	Compression      string      `yaml:"compression,omitempty"`
	MaxMessageBytes  int         `yaml:"max_message_bytes,omitempty"`
	TombstoneOnEmpty bool        `yaml:"tombstone_on_empty,omitempty"`
}

type tlsConfig struct {
	CAFile             string `yaml:"ca_file,omitempty"`
	CertFile           string `yaml:"cert_file,omitempty"`
	KeyFile            string `yaml:"key_file,omitempty"`
	ServerName         string `yaml:"server_name,omitempty"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify,omitempty"`
}

type saslConfig struct {
	Mechanism    string `yaml:"mechanism,omitempty"`
	Username     string `yaml:"username,omitempty"`
	Password     Secret `yaml:"password,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	PasswordEnv  string `yaml:"password_env,omitempty"`
	TokenFile    string `yaml:"token_file,omitempty"` // of OAUTHBEARER, read anew for every connection
}

func (s saslConfig) source() secretSource {
	return secretSource{s.Password, s.PasswordFile, s.PasswordEnv}
}

type breakerConfig struct {
	Run   int           `yaml:"run,omitempty"`
	Pause time.Duration `yaml:"pause,omitempty"`
	Cap   time.Duration `yaml:"cap,omitempty"`
}

type routeConfig struct {
	Match   string                  `yaml:"match,omitempty"`
	To      string                  `yaml:"to,omitempty"`
	Ordered bool                    `yaml:"ordered"` // shown also where it is false: webhook and program routes have to say it
	Policy  policyConfig            `yaml:",inline"`
	Types   map[string]policyConfig `yaml:"types,omitempty"`
}

// policyConfig says of a route, or of a type in it, what a message may cost. What a type leaves out, its route says.
type policyConfig struct {
	Budget   int           `yaml:"budget,omitempty"`
	Timeout  time.Duration `yaml:"timeout,omitempty"`
	Base     time.Duration `yaml:"base,omitempty"`
	Cap      time.Duration `yaml:"cap,omitempty"`
	Versions []int         `yaml:"versions,omitzero"` // empty, but there: every version
	Emit     *emitConfig   `yaml:"emit,omitempty"`
}

// emitConfig names the message that tells the application of a final one. Of a type, an empty one takes back what its route
// says.
type emitConfig struct {
	Type          string `yaml:"type,omitempty"`
	AggregateType string `yaml:"aggregatetype,omitempty"`
}

func (e *emitConfig) word() *string { return &e.Type }

// String is short where the file can be.
func (e emitConfig) String() string {
	if e.AggregateType == "" {
		return e.Type
	}
	return "{type: " + e.Type + ", aggregatetype: " + e.AggregateType + "}"
}

// MarshalYAML writes one word where the file can.
func (e emitConfig) MarshalYAML() (any, error) { //nolint:unparam // yaml.InterfaceMarshaler
	if e.AggregateType == "" {
		return e.Type, nil
	}
	type section emitConfig
	return section(e), nil
}

// defaultConfig is what holds where neither file nor environment says anything. What is missing here has its default in
// package relay.
func defaultConfig() config {
	return config{
		Relay: relayConfig{Lease: relay.DefaultLease, StopTimeout: relay.DefaultStopTimeout},
		HTTP:  httpConfig{Listen: ":9465"},
		Log:   logConfig{Level: "info", Format: "auto"},
		Trace: traceConfig{Parent: traceLink},
	}
}
