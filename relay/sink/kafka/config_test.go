package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/outboxd/outboxd/relay"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	local, remote := []string{"127.0.0.1:9092", "[::1]:9092", "localhost:9092"}, []string{"127.0.0.1:9092", "kafka:9092"}
	plain := &SASL{Mechanism: "PLAIN", Username: "u", Password: "hunter2"}
	cases := []struct {
		name string
		cfg  Config
		want []string // what the error says, in order; empty: no error
	}{
		{"the least", Config{Brokers: remote}, nil},
		{"nothing", Config{}, []string{"kafka.brokers: is empty"}},
		{
			"several at once",
			Config{Brokers: []string{"kafka", ":1", "a:0", "a:99999"}, Topic: "{id}", Compression: "rar", Version: "x"},
			[]string{`brokers: "kafka" is not`, `":1"`, `"a:0"`, `"a:99999"`, "topic", "version", "compression"},
		},
		{"old version", Config{Brokers: local, Version: "0.10.2.0"}, []string{"0.11.0.0"}},
		{"topic never legal", Config{Brokers: local, Topic: ".."}, []string{"topic", "no legal name"}},
		{"topic with blanks", Config{Brokers: local, Topic: "a {type}"}, []string{"topic"}},
		{"topic not closed", Config{Brokers: local, Topic: "a{type"}, []string{"topic"}},
		{"bounds", Config{Brokers: local, MaxMessageBytes: -1, Timeout: -time.Second}, []string{"max_message_bytes", "timeout"}},
		{"password in the clear", Config{Brokers: remote, SASL: plain}, []string{"kafka.sasl: PLAIN", "insecure: true"}},
		{"password on loopback", Config{Brokers: local, SASL: plain}, nil},
		{"password, accepted", Config{Brokers: remote, SASL: plain, Insecure: true}, nil},
		{"password over TLS", Config{Brokers: remote, SASL: plain, TLS: &TLS{}}, nil},
		{"token in the clear", Config{Brokers: remote, SASL: &SASL{Mechanism: "OAUTHBEARER", TokenFile: "t"}}, []string{"OAUTHBEARER"}},
		{"SCRAM sends no password", Config{Brokers: remote, SASL: &SASL{Mechanism: "SCRAM-SHA-512", Username: "u", Password: "p"}}, nil},
		{"empty credentials", Config{Brokers: local, SASL: &SASL{Mechanism: "SCRAM-SHA-256"}}, []string{"sasl.username", "sasl.password"}},
		{"no token", Config{Brokers: local, SASL: &SASL{Mechanism: "OAUTHBEARER"}}, []string{"token_file"}},
		{"unknown mechanism", Config{Brokers: local, SASL: &SASL{Mechanism: "GSSAPI"}}, []string{`"GSSAPI"`, "SCRAM-SHA-512"}},
		{"half a certificate", Config{Brokers: local, TLS: &TLS{CertFile: "c"}}, []string{"key_file"}},
		{"unverified TLS", Config{Brokers: local, TLS: &TLS{InsecureSkipVerify: true}}, []string{"insecure_skip_verify"}},
		{"unverified TLS, accepted", Config{Brokers: local, Insecure: true, TLS: &TLS{InsecureSkipVerify: true}}, nil},
	}
	for _, c := range cases {
		err := c.cfg.Validate()
		if len(c.want) == 0 {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		text := fmt.Sprint(err)
		for rest := text; len(c.want) > 0; c.want = c.want[1:] {
			_, after, found := strings.Cut(rest, c.want[0])
			if !found {
				t.Errorf("%s: %q does not say %q", c.name, text, c.want[0])
				break
			}
			rest = after
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q has the password", c.name, text)
		}
	}
}

// TestSettings holds the producer's configuration to what order and durability need (scenario S42).
func TestSettings(t *testing.T) {
	t.Parallel()
	s, err := Config{Brokers: []string{"a:1"}}.withDefaults().settings()
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]bool{
		"acks of all":          s.Producer.RequiredAcks == sarama.WaitForAll,
		"idempotent":           s.Producer.Idempotent,
		"one open request":     s.Net.MaxOpenRequests == 1,
		"both returned":        s.Producer.Return.Successes && s.Producer.Return.Errors,
		"no topic by asking":   !s.Metadata.AllowAutoTopicCreation,
		"lz4":                  s.Producer.Compression == sarama.CompressionLZ4,
		"tail of a batch":      s.Producer.Flush.Frequency > 0,
		"our limit":            s.Producer.MaxMessageBytes == DefaultMaxMessageBytes,
		"ends before we do":    (retries+1)*netTimeout <= DefaultTimeout,
		"keys as Java's":       samePartitioner(s.Producer.Partitioner, sarama.NewMurmur2Partitioner),
		"no certificate asked": !s.Net.TLS.Enable && !s.Net.SASL.Enable,
	}
	for name, ok := range checks {
		if !ok {
			t.Errorf("settings: %s does not hold", name)
		}
	}
	lone := alone(*s)
	if lone.Producer.Flush.MaxMessages != 1 || lone.Producer.Flush.Frequency != 0 || !lone.Producer.Idempotent {
		t.Errorf("settings of the lone producer: %+v", lone.Producer.Flush)
	}
	if s.Producer.Flush.MaxMessages != 0 {
		t.Error("the lone producer's settings changed the shared one's")
	}
}

func samePartitioner(a, b sarama.PartitionerConstructor) bool {
	return fmt.Sprintf("%T", a("t")) == fmt.Sprintf("%T", b("t"))
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.pem")
	for want, c := range map[string]TLS{
		"ca_file: " + empty + " holds": {CAFile: empty},
		"ca_file: open " + none:        {CAFile: none},
		"cert_file, key_file":          {CertFile: empty, KeyFile: empty},
	} {
		_, err := New(Config{Brokers: []string{"a:1"}, TLS: &c}, quiet(t))
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for _, f := range []string{none, empty} {
		_, err := tokenFile(f).Token()
		v := judge(sarama.Wrap(sarama.ErrOutOfBrokers, err), try{})
		wantKind(t, v.Outcome, relay.KindUnsent, "auth", f, "sasl.token_file")
	}
}
