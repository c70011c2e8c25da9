package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// Test tries what a destination of cfg needs, and sends no record: each broker's address, connection, TLS and login, then
// what the cluster says of itself and of the topic, where that is one for all messages. It tells each step in words, with
// an error where it failed. cfg is one that Validate takes.
func Test(ctx context.Context, cfg Config, told func(step, words string, err error)) {
	cfg = cfg.withDefaults()
	settings, err := cfg.settings()
	if err != nil {
		told("settings", "", err)
		return
	}
	t := &trial{cfg: cfg, settings: settings, told: told}
	for _, addr := range cfg.Brokers {
		t.broker(ctx, addr, "check the destination's brokers, and what stands between")
	}
	if t.first != nil {
		t.cluster(ctx)
		_ = t.first.Close()
	}
}

// trial is one Test.
type trial struct {
	cfg      Config
	settings *sarama.Config
	told     func(step, words string, err error)
	first    *sarama.Broker // that took us in, to ask it about the cluster
}

// broker tries one address as far as it goes; mend is for one that cannot be reached.
func (t *trial) broker(ctx context.Context, addr, mend string) {
	conn, err := (&net.Dialer{Timeout: netTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		t.told("connection "+addr, "", fmt.Errorf("%w; %s", err, mend))
		return
	}
	defer conn.Close()
	t.told("connection "+addr, "to "+conn.RemoteAddr().String(), nil)
	if t.settings.Net.TLS.Enable && !t.secure(ctx, addr, conn) {
		return
	}
	t.login(addr)
}

// secure shakes hands, and tells whose certificate it is.
func (t *trial) secure(ctx context.Context, addr string, conn net.Conn) bool {
	config := t.settings.Net.TLS.Config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr) // Validate has split it
	}
	ctx, cancel := context.WithTimeout(ctx, netTimeout)
	defer cancel()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		t.failed("TLS "+addr, err, "check the destination's tls settings")
		return false
	}
	state := secure.ConnectionState()
	cert := state.PeerCertificates[0]
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	words := fmt.Sprintf("%s, a certificate of %s, until %s", tls.VersionName(state.Version), strings.Join(names, ", "),
		cert.NotAfter.UTC().Format(time.DateOnly))
	if t.cfg.TLS.InsecureSkipVerify {
		words += ", not verified"
	}
	t.told("TLS "+addr, words, nil)
	return true
}

// login opens a connection as the producer does.
func (t *trial) login(addr string) {
	settings := *t.settings
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, newWire(netTimeout)
	step, words, mend := "protocol "+addr, "it answers as Kafka does", "is it a broker's port, and does that want tls?"
	if t.cfg.SASL != nil {
		step, words, mend = "login "+addr, t.cfg.SASL.Mechanism, "check the destination's sasl settings"
	}
	broker := sarama.NewBroker(addr)
	err := broker.Open(&settings)
	if err == nil {
		_, err = broker.Connected()
	}
	if err != nil {
		t.failed(step, err, mend)
		return
	}
	t.told(step, words, nil)
	if t.first == nil {
		t.first = broker
		return
	}
	_ = broker.Close()
}

// cluster asks for what every producer needs to know, tries the addresses that the cluster gives for its brokers where they
// are not those of the settings, and looks at the topic.
func (t *trial) cluster(ctx context.Context) {
	template, err := parseTopic(t.cfg.Topic)
	if err != nil {
		t.told("topic", "", err)
		return
	}
	names := []string{} // of none: nil asks for all
	if template.fixed() {
		names = append(names, t.cfg.Topic)
	}
	found, err := t.first.GetMetadata(sarama.NewMetadataRequest(t.settings.Version, names))
	if err != nil {
		t.failed("cluster", err, "see the brokers' log")
		return
	}
	var addresses []string
	for _, b := range found.Brokers {
		addresses = append(addresses, b.Addr())
	}
	slices.Sort(addresses)
	t.told("cluster", "its brokers call themselves "+strings.Join(addresses, ", "), nil)
	for _, addr := range addresses {
		if !slices.Contains(t.cfg.Brokers, addr) {
			t.broker(ctx, addr, "the cluster names it so: check the brokers' advertised.listeners")
		}
	}
	if !template.fixed() {
		t.told("topic", t.cfg.Topic+": each message says which", nil)
	}
	for _, topic := range found.Topics {
		t.topic(topic)
	}
}

func (t *trial) topic(found *sarama.TopicMetadata) {
	step := "topic " + found.Name
	if found.Err != sarama.ErrNoError {
		t.failed(step, found.Err, "see the brokers' log")
		return
	}
	for _, p := range found.Partitions {
		if p.Leader < 0 {
			t.told(step, "", fmt.Errorf("partition %d of %d has no leader: its brokers are away", p.ID, len(found.Partitions)))
			return
		}
	}
	t.told(step, fmt.Sprintf("%d partitions", len(found.Partitions)), nil)
}

// failed tells of a step in the words that a send would fail with. They name a mend, or mend is it.
func (t *trial) failed(step string, err error, mend string) {
	words := judge(err, try{}).Err
	if !strings.Contains(words, "; ") {
		words += "; " + mend
	}
	t.told(step, "", errors.New(words))
}

// fixed tells whether all messages go to one topic.
func (t topic) fixed() bool { return len(t.parts) == 1 && t.parts[0].of == nil }
