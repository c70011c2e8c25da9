package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/xdg-go/scram"
)

// Time-outs and retries of the client. Together they end a send in about 24 s when a broker stops answering, below the
// 30 s that a Send has, so that the answer is sarama's and not a guess of ours.
const (
	netTimeout      = 6 * time.Second
	produceTimeout  = 5 * time.Second
	metadataTimeout = 5 * time.Second
	retries         = 3
	retryBackoff    = 100 * time.Millisecond
	flushFrequency  = 2 * time.Millisecond
	flushMessages   = 500
	buffer          = 2048
)

// settings are sarama's for the shared producer: no duplicate from its own retries, order per partition, no topic made by
// asking for it, keys where a Java client puts them.
func (c Config) settings() (*sarama.Config, error) {
	s := sarama.NewConfig()
	s.ClientID = c.ClientID
	s.ChannelBufferSize = buffer
	s.MetricRegistry = silence{metrics.NewRegistry()}
	s.Net.MaxOpenRequests = 1
	s.Net.DialTimeout, s.Net.ReadTimeout, s.Net.WriteTimeout = netTimeout, netTimeout, netTimeout
	s.Metadata.Timeout = metadataTimeout
	s.Metadata.AllowAutoTopicCreation = false
	s.Producer.Idempotent = true
	s.Producer.RequiredAcks = sarama.WaitForAll
	s.Producer.Timeout = produceTimeout
	s.Producer.Retry.Max, s.Producer.Retry.Backoff = retries, retryBackoff
	s.Producer.Transaction.Retry.Max = retries // also of asking for the producer's id
	s.Producer.Return.Successes, s.Producer.Return.Errors = true, true
	s.Producer.Flush.Frequency, s.Producer.Flush.Messages = flushFrequency, flushMessages
	s.Producer.MaxMessageBytes = c.MaxMessageBytes
	s.Producer.Partitioner = sarama.NewMurmur2Partitioner
	var err error
	if s.Version, err = sarama.ParseKafkaVersion(c.Version); err != nil {
		return nil, err
	}
	if s.Producer.Compression, err = compression(c.Compression); err != nil {
		return nil, err
	}
	if err := c.setTLS(s); err != nil {
		return nil, err
	}
	c.setSASL(s)
	return s, s.Validate()
}

// alone changes s so that every request carries one message: what a broker refuses then, it refuses for that message.
func alone(s sarama.Config) *sarama.Config {
	s.Producer.Flush.Frequency, s.Producer.Flush.Messages = 0, 0
	s.Producer.Flush.MaxMessages = 1
	return &s
}

func (c Config) setTLS(s *sarama.Config) error {
	if c.TLS == nil {
		return nil
	}
	conf := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.TLS.ServerName,
		InsecureSkipVerify: c.TLS.InsecureSkipVerify, //nolint:gosec // Validate demands Insecure beside it
	}
	if c.TLS.CAFile != "" {
		pem, err := os.ReadFile(c.TLS.CAFile)
		if err != nil {
			return fmt.Errorf("kafka.tls.ca_file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("kafka.tls.ca_file: %s holds no certificate in PEM form", c.TLS.CAFile)
		}
	}
	if c.TLS.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
		if err != nil {
			return fmt.Errorf("kafka.tls.cert_file, key_file: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	s.Net.TLS.Enable, s.Net.TLS.Config = true, conf
	return nil
}

func (c Config) setSASL(s *sarama.Config) {
	if c.SASL == nil {
		return
	}
	sasl := &s.Net.SASL
	sasl.Enable = true
	sasl.Mechanism = sarama.SASLMechanism(c.SASL.Mechanism)
	sasl.User, sasl.Password = c.SASL.Username, c.SASL.Password
	switch sasl.Mechanism {
	case sarama.SASLTypeSCRAMSHA256:
		sasl.SCRAMClientGeneratorFunc = newScram(scram.SHA256)
	case sarama.SASLTypeSCRAMSHA512:
		sasl.SCRAMClientGeneratorFunc = newScram(scram.SHA512)
	case sarama.SASLTypeOAuth:
		sasl.TokenProvider = tokenFile(c.SASL.TokenFile)
	}
}

// tokenFile is the path of a token, read anew whenever sarama authenticates, so that whoever renews it needs no restart.
type tokenFile string

// tokenError says why there is no token; it names the file, never what is in it.
type tokenError struct{ error }

func (e tokenError) Unwrap() error { return e.error }

// Token implements sarama.AccessTokenProvider.
func (f tokenFile) Token() (*sarama.AccessToken, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return nil, tokenError{err}
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return nil, tokenError{fmt.Errorf("the token file %s is empty", string(f))}
	}
	return &sarama.AccessToken{Token: token}, nil
}

// silence is a registry of metrics that keeps none: sarama would else feed histograms with every request.
type silence struct{ metrics.Registry }

// GetOrRegister hands out a metric that counts nothing.
func (s silence) GetOrRegister(name string, metric any) any {
	switch metric.(type) {
	case func() metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Counter:
		return metrics.NilCounter{}
	}
	return s.Registry.GetOrRegister(name, metric)
}
