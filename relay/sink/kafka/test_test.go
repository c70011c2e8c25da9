package kafka

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// told runs Test and gives a line for each step: ok or failed, the step, the words.
func told(t *testing.T, cfg Config) string {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	Test(within(t, generous), cfg, func(step, words string, err error) {
		if err != nil {
			lines = append(lines, "failed "+step+": "+err.Error())
			return
		}
		lines = append(lines, "ok "+step+": "+words)
	})
	return strings.Join(lines, "\n")
}

func TestTrial(t *testing.T) {
	t.Parallel()
	server, serverFile, _ := selfSigned(t)
	_, strangerFile, _ := selfSigned(t)
	plain := newCluster(t).ListenAddrs()[0]
	secure := newCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server}})).ListenAddrs()[0]
	guarded := newCluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "relay", password)).ListenAddrs()[0]
	for name, c := range map[string]struct {
		cfg    Config
		want   []string
		failed int
	}{
		"all well": {
			cfg:  Config{Brokers: []string{plain}, Topic: "orders"},
			want: []string{"ok connection " + plain + ": to 127.0.0.1:", "ok protocol " + plain, "ok cluster: its brokers call themselves " + plain, "ok topic orders: 1 partitions"},
		},
		"a topic for each message": {
			cfg:  Config{Brokers: []string{plain}},
			want: []string{"ok topic: outbox.event.{routing_key}: each message says which"},
		},
		"no topic": {
			cfg: Config{Brokers: []string{plain}, Topic: "invoices"}, failed: 1,
			want: []string{"failed topic invoices: ", "; create the topic, or change the destination's topic"},
		},
		"nobody there": {
			cfg: Config{Brokers: []string{"127.0.0.1:1", plain}, Topic: "orders"}, failed: 1,
			want: []string{"failed connection 127.0.0.1:1: ", "refused; check the destination's brokers", "ok topic orders"},
		},
		"TLS": {
			cfg:  Config{Brokers: []string{secure}, Topic: "orders", TLS: &TLS{CAFile: serverFile}},
			want: []string{"ok TLS " + secure + ": TLS 1.3, a certificate of 127.0.0.1, until 20", "ok topic orders"},
		},
		"TLS, unverified": {
			cfg:  Config{Brokers: []string{secure}, Topic: "orders", TLS: &TLS{InsecureSkipVerify: true}, Insecure: true},
			want: []string{", not verified", "ok topic orders"},
		},
		"TLS, another CA": {
			cfg: Config{Brokers: []string{secure}, Topic: "orders", TLS: &TLS{CAFile: strangerFile}}, failed: 1,
			want: []string{"ok connection", "failed TLS " + secure + ": ", "; check the destination's tls settings"},
		},
		"no file": {
			cfg: Config{Brokers: []string{secure}, TLS: &TLS{CAFile: "none.pem"}}, failed: 1,
			want: []string{"failed settings: kafka.tls.ca_file: open none.pem"},
		},
		"a login": {
			cfg:  Config{Brokers: []string{guarded}, Topic: "orders", SASL: &SASL{Mechanism: "SCRAM-SHA-256", Username: "relay", Password: password}},
			want: []string{"ok login " + guarded + ": SCRAM-SHA-256", "ok topic orders"},
		},
		"another password": {
			cfg: Config{Brokers: []string{guarded}, SASL: &SASL{Mechanism: "SCRAM-SHA-256", Username: "relay", Password: "x" + password}}, failed: 1,
			want: []string{"ok connection", "failed login " + guarded},
		},
		"another way to log in": {
			cfg: Config{Brokers: []string{guarded}, SASL: &SASL{Mechanism: "PLAIN", Username: "relay", Password: password}}, failed: 1,
			want: []string{"failed login " + guarded, "; check the destination's sasl settings"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := told(t, c.cfg)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
			if n := strings.Count("\n"+got, "\nfailed "); n != c.failed || strings.Contains(got, password) {
				t.Errorf("%d steps failed, want %d, and no secret:\n%s", n, c.failed, got)
			}
		})
	}
}

// TestTrialChangesNothing holds that the cluster is asked only, and that its own addresses are tried too.
func TestTrialChangesNothing(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(2))
	var asked []int16 // kfake runs one control function at a time
	cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		asked = append(asked, r.Key())
		return nil, nil, false
	})
	first, second := cluster.ListenAddrs()[0], cluster.ListenAddrs()[1]
	got := told(t, Config{Brokers: []string{first}, Topic: "invoices"})
	if !strings.Contains(got, "ok connection "+second) || !strings.Contains(got, "ok protocol "+second) {
		t.Errorf("the other broker was not tried:\n%s", got)
	}
	cluster.Close()
	for _, key := range asked {
		if key != kmsg.Metadata.Int16() && key != kmsg.ApiVersions.Int16() {
			t.Errorf("it asked for %s", kmsg.NameForKey(key))
		}
	}
	if len(asked) == 0 {
		t.Error("nothing was seen")
	}
}
