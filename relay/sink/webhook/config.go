package webhook

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Defaults of Config. relay/DESIGN.md, Defaults.
const (
	DefaultWidth          = 8
	DefaultTimeout        = 20 * time.Second
	DefaultConnectTimeout = 10 * time.Second
	defaultUserAgent      = "outboxd"
	defaultKeyHeader      = "Idempotency-Key" // draft-ietf-httpapi-idempotency-key-header
)

// How a wire key is written into its header.
const (
	KeyBare     = "bare"      // as it is, which is what deployed servers take
	KeySFString = "sf-string" // in quotes: a string of RFC 9651, as the draft of the header has it
)

// What a request looks like.
const (
	FormatPlain       = "plain"
	FormatCloudEvents = "cloudevents" // binary mode of CloudEvents 1.0: the headers of plain, and ce-*
)

// Source gives a secret whenever it is needed, so that the file behind it can be replaced. Its error names where the secret
// should be, never what it is. Safe for concurrent use.
type Source func() (string, error)

// Config says where messages are posted and what their requests look like.
type Config struct {
	URL              string        // http or https, without user and fragment; no part of it comes from a message
	Width            int           // sends at once, which is how many idle connections are kept; default 8
	Timeout          time.Duration // of a Send whose context has no deadline, and of asking for a token; default 20 s
	ConnectTimeout   time.Duration // of address, connection and TLS handshake together; default 10 s
	UserAgent        string        // default "outboxd"
	FreshConnections bool          // a connection for each send, so that none can meet one that the receiver is closing
	PublicOnly       bool          // connects to no address that is loopback, private or otherwise not of the public internet
	TLS              *TLS          // nil: the system's roots, no certificate of ours

	KeyHeader    string            // header of the wire key, default Idempotency-Key
	KeyFormat    string            // KeyBare, the default, or KeySFString
	Headers      map[string]Source // sent with every request; their values are secrets to every output
	AllowHeaders []string          // of a row's headers only these are sent; nil: all that are not ours
	Format       string            // FormatPlain, the default, or FormatCloudEvents
	CloudEvents  CloudEvents       // of FormatCloudEvents

	Bearer  Source  // at most one of Bearer, Basic and OAuth2
	Basic   *Basic  // RFC 7617
	OAuth2  *OAuth2 // client credentials, RFC 6749, 4.4
	Secrets Source  // of Standard Webhooks: whsec_…, newest first, separated by blanks, commas or line ends; nil: no signature

	Outcomes          map[string]relay.Rule // by status, "404", or by class, "4xx"; a status goes before its class
	RemembersFailures bool                  // the receiver repeats a 5xx under its key: it ends failed(unknown)
	OnGonePause       bool                  // 410 pauses the destination
	Result            string                // a JSON pointer (RFC 6901) into the answer; "": Location, else the start of the body
}

// Basic is a user with a password.
type Basic struct {
	Username string
	Password Source
}

// OAuth2 says where tokens come from. The token server is reached as the destination is: same CA, same egress rule.
type OAuth2 struct {
	TokenURL     string
	ClientID     string
	ClientSecret Source
	Scopes       []string
	Params       map[string]string // sent beside, such as audience
	InBody       bool              // id and secret in the body; false: as Basic authentication, which every server must take
}

// TLS says how the receiver proves who it is, and how we do.
type TLS struct {
	CAFile            string // PEM, in place of the system's roots
	CertFile, KeyFile string // PEM, both or none: our certificate, read anew for every connection
	ServerName        string // that the certificate must have; "": the URL's host
}

// CloudEvents says what of an event is not in its row.
type CloudEvents struct {
	Source     string   // a URI reference: who it is that says what happened
	TypePrefix string   // before type, such as com.example.
	DataSchema string   // a URI with {type} and {schema_version} in it; "": none
	Subject    bool     // aggregateid is the subject, too
	Extensions []string // names of a row's headers that go as extensions: [a-z0-9]+
}

func (c Config) withDefaults() Config {
	if c.Width == 0 {
		c.Width = DefaultWidth
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.UserAgent == "" {
		c.UserAgent = defaultUserAgent
	}
	if c.KeyHeader == "" {
		c.KeyHeader = defaultKeyHeader
	}
	if c.KeyFormat == "" {
		c.KeyFormat = KeyBare
	}
	if c.Format == "" {
		c.Format = FormatPlain
	}
	return c
}
