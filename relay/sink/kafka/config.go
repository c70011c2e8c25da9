package kafka

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

// Defaults of Config.
const (
	DefaultTopic           = "outbox.event.{routing_key}" // what Debezium's outbox router names them
	DefaultMaxMessageBytes = 1 << 20                      // below a broker's message.max.bytes of 1 MiB and its overhead
	DefaultTimeout         = 30 * time.Second             // relay/DESIGN.md, Defaults
	defaultClientID        = "outboxd"
	defaultCompression     = "lz4"
)

// Config says how a Kafka cluster is reached. Secrets are plain strings; nothing in this package prints them.
type Config struct {
	Brokers          []string      // host:port of at least one broker
	Topic            string        // template with {routing_key} and {type}; default DefaultTopic
	TLS              *TLS          // nil: no TLS
	SASL             *SASL         // nil: no authentication, or mTLS
	Insecure         bool          // permits a password or token without TLS off loopback, and TLS without verification
	Version          string        // of the oldest broker, 0.11.0.0 or later; default 2.8.0
	ClientID         string        // default "outboxd"
	Compression      string        // none, gzip, snappy, lz4 (the default) or zstd
	MaxMessageBytes  int           // the topic's max.message.bytes; larger messages fail without being sent; default 1 MiB
	TombstoneOnEmpty bool          // a message without payload goes as a null value, which compaction takes for a deletion
	Timeout          time.Duration // of a Send whose context has no deadline; default 30 s
}

// TLS says how brokers prove who they are, and how we do.
type TLS struct {
	CAFile             string // PEM; empty: the system's roots
	CertFile, KeyFile  string // PEM, both or none: our certificate, where the brokers ask for one
	ServerName         string // empty: the host of the broker's address
	InsecureSkipVerify bool   // takes any certificate; needs Insecure
}

// SASL says how we authenticate.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
	Username  string
	Password  string
	TokenFile string // of OAUTHBEARER: the token, read anew for every connection
}

// Validate names every setting that cannot work, and what to write instead. It reads no file and asks no broker.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("kafka.%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if len(c.Brokers) == 0 {
		bad("brokers", "is empty; name at least one broker as host:port")
	}
	for _, b := range c.Brokers {
		if !isHostPort(b) {
			bad("brokers", "%q is not host:port, such as kafka:9092", b)
		}
	}
	if _, err := parseTopic(c.Topic); err != nil {
		bad("topic", "%v", err)
	}
	if v, err := sarama.ParseKafkaVersion(c.Version); err != nil || !v.IsAtLeast(sarama.V0_11_0_0) {
		bad("version", "%q is not a version of Kafka from 0.11.0.0 on, such as 2.8.0", c.Version)
	}
	if _, err := compression(c.Compression); err != nil {
		bad("compression", "%v", err)
	}
	if c.MaxMessageBytes < 1 || c.MaxMessageBytes > int(sarama.MaxRequestSize) {
		bad("max_message_bytes", "%d is not between 1 and %d", c.MaxMessageBytes, sarama.MaxRequestSize)
	}
	if c.Timeout < 0 {
		bad("timeout", "%s is negative", c.Timeout)
	}
	c.validateTLS(bad)
	c.validateSASL(bad)
	return errors.Join(errs...)
}

func (c Config) validateTLS(bad func(key, format string, args ...any)) {
	if c.TLS == nil {
		return
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		bad("tls", "cert_file and key_file go together; set both or none")
	}
	if c.TLS.InsecureSkipVerify && !c.Insecure {
		bad("tls.insecure_skip_verify", "anybody could pose as the broker; set ca_file, or insecure: true to accept that")
	}
}

func (c Config) validateSASL(bad func(key, format string, args ...any)) {
	if c.SASL == nil {
		return
	}
	switch sarama.SASLMechanism(c.SASL.Mechanism) {
	case sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512:
		if c.SASL.Username == "" {
			bad("sasl.username", "is empty; %s needs one", c.SASL.Mechanism)
		}
		if c.SASL.Password == "" {
			bad("sasl.password", "is empty; %s needs one", c.SASL.Mechanism)
		}
	case sarama.SASLTypeOAuth:
		if c.SASL.TokenFile == "" {
			bad("sasl.token_file", "is empty; name the file that holds the token")
		}
	default:
		bad("sasl.mechanism", "%q is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER", c.SASL.Mechanism)
	}
	if c.TLS == nil && !c.Insecure && c.SASL.inTheClear() && slices.ContainsFunc(c.Brokers, isRemote) {
		bad("sasl", "%s would send the secret unencrypted; set tls, or insecure: true to accept that", c.SASL.Mechanism)
	}
}

// inTheClear tells whether the mechanism sends the secret itself.
func (s SASL) inTheClear() bool {
	m := sarama.SASLMechanism(s.Mechanism)
	return m == sarama.SASLTypePlaintext || m == sarama.SASLTypeOAuth
}

func (c Config) withDefaults() Config {
	if c.Topic == "" {
		c.Topic = DefaultTopic
	}
	if c.Version == "" {
		c.Version = sarama.DefaultVersion.String()
	}
	if c.ClientID == "" {
		c.ClientID = defaultClientID
	}
	if c.Compression == "" {
		c.Compression = defaultCompression
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	return c
}

func compression(name string) (sarama.CompressionCodec, error) {
	switch name {
	case "none":
		return sarama.CompressionNone, nil
	case "gzip":
		return sarama.CompressionGZIP, nil
	case "snappy":
		return sarama.CompressionSnappy, nil
	case "lz4":
		return sarama.CompressionLZ4, nil
	case "zstd":
		return sarama.CompressionZSTD, nil
	}
	return 0, fmt.Errorf("%q is not one of none, gzip, snappy, lz4, zstd", name)
}

func isHostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, portErr := strconv.Atoi(port)
	return err == nil && host != "" && portErr == nil && n > 0 && n < 1<<16
}

func isRemote(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return false
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}
