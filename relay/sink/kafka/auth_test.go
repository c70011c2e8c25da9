package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/outboxd/outboxd/relay"
)

const password = "s3cret-of-the-test"

func TestSASL(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "relay", password))
			as := func(user, password string) *Sink {
				return newSink(t, cluster.ListenAddrs(), func(c *Config) {
					c.SASL = &SASL{Mechanism: mechanism, Username: user, Password: password}
				})
			}
			o := as("relay", password).Send(within(t, generous), newMessage("orders", "a"))
			wantKind(t, o, relay.KindDone, "")
			o = as("relay", password+"x").Send(within(t, generous), newMessage("orders", "b"))
			wantKind(t, o, relay.KindUnsent, o.Class) // kfake drops the connection, with no code to judge by
			if !o.Wide || strings.Contains(o.Err, password) {
				t.Errorf("%+v: want it of the whole cluster and without the password", o)
			}
		})
	}
}

func TestMechanismThatTheBrokerDoesNotHave(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "relay", password))
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := tokenFile(file).Token(); err != nil || token.Token != password {
		t.Errorf("token %v, %v", token, err)
	}
	sink := newSink(t, cluster.ListenAddrs(), func(c *Config) {
		c.SASL = &SASL{Mechanism: "OAUTHBEARER", TokenFile: file}
	})
	o := sink.Send(within(t, generous), newMessage("orders", "a"))
	wantKind(t, o, relay.KindUnsent, "auth", "sasl")
	if strings.Contains(o.Err, password) {
		t.Errorf("%q has the token", o.Err)
	}
}

// TestNoRightToProduceIdempotently has a cluster that gives us no producer id.
func TestNoRightToProduceIdempotently(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	fault := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed,
		TopLevel: true, Count: -1,
	})
	sink := newSink(t, cluster.ListenAddrs(), nil)
	o := sink.Send(within(t, generous), newMessage("orders", "a"))
	wantKind(t, o, relay.KindUnsent, "auth", "IDEMPOTENT_WRITE")
	if !o.Wide {
		t.Errorf("%+v does not speak of the whole cluster", o)
	}
	fault.Remove()
	untilDone(t, sink, "orders")
}

// TestTokenIsReadAnew sees the token on the wire, and another one after the file has changed.
func TestTokenIsReadAnew(t *testing.T) {
	t.Parallel()
	broker := sarama.NewMockBroker(t, 1)
	defer broker.Close()
	broker.SetHandlerByMap(map[string]sarama.MockResponse{
		"SaslHandshakeRequest":    sarama.NewMockSaslHandshakeResponse(t).SetEnabledMechanisms([]string{sarama.SASLTypeOAuth}),
		"SaslAuthenticateRequest": sarama.NewMockSaslAuthenticateResponse(t),
	})
	file := filepath.Join(t.TempDir(), "token")
	cfg := Config{Brokers: []string{broker.Addr()}, SASL: &SASL{Mechanism: "OAUTHBEARER", TokenFile: file}}.withDefaults()
	settings, err := cfg.settings()
	if err != nil {
		t.Fatal(err)
	}
	settings.ApiVersionsRequest = false // which the double does not answer
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, newWire(netTimeout)
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		connection := sarama.NewBroker(broker.Addr())
		if err := connection.Open(settings); err != nil {
			t.Fatal(err)
		}
		if ok, err := connection.Connected(); !ok {
			t.Fatal(err)
		}
		_ = connection.Close()
		if !strings.Contains(tokensSeen(broker), "auth=Bearer "+token+"\x01") {
			t.Errorf("the broker saw %q, want the token %q", tokensSeen(broker), token)
		}
	}
}

func tokensSeen(broker *sarama.MockBroker) string {
	var seen strings.Builder
	for _, exchange := range broker.History() {
		if r, ok := exchange.Request.(*sarama.SaslAuthenticateRequest); ok {
			seen.Write(r.SaslAuthBytes)
		}
	}
	return seen.String()
}

// selfSigned makes a certificate for 127.0.0.1 and the PEM files of it.
func selfSigned(t *testing.T) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server, serverFile, _ := selfSigned(t)
	client, clientFile, clientKey := selfSigned(t)
	known := x509.NewCertPool()
	known.AddCert(client.Leaf)
	_, strangerFile, strangerKey := selfSigned(t)
	cluster := newCluster(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known,
	}))
	cases := []struct {
		name  string
		tls   TLS
		class string // of an unsent; empty: done
	}{
		{"known to each other", TLS{CAFile: serverFile, CertFile: clientFile, KeyFile: clientKey}, ""},
		{"unverified", TLS{InsecureSkipVerify: true, CertFile: clientFile, KeyFile: clientKey}, ""},
		{"unknown broker", TLS{CAFile: strangerFile, CertFile: clientFile, KeyFile: clientKey}, "tls"},
		{"wrong name", TLS{CAFile: serverFile, ServerName: "kafka.example", CertFile: clientFile, KeyFile: clientKey}, "tls"},
		{"unknown client", TLS{CAFile: serverFile, CertFile: strangerFile, KeyFile: strangerKey}, "tls"},
		{"no certificate", TLS{CAFile: serverFile}, "tls"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sink := newSink(t, cluster.ListenAddrs(), func(cfg *Config) { cfg.TLS, cfg.Insecure = &c.tls, true })
			o := sink.Send(within(t, generous), newMessage("orders", "a"))
			if c.class == "" {
				wantKind(t, o, relay.KindDone, "")
				return
			}
			wantKind(t, o, relay.KindUnsent, c.class, "tls settings")
			if !o.Wide {
				t.Errorf("%+v does not speak of the whole cluster", o)
			}
		})
	}
}
