package integration

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// opened is what an engine's package opens.
type opened interface {
	Store(relayName, instance string, lease time.Duration) (dialect.Store, error)
	Close() error
}

// relayInside makes a relay that runs in the test's own process, with the real Store over a database and one
// destination for all messages. It runs from the call of begin until the end of the test.
func relayInside(t *testing.T, d *database, name string, destination relay.Destination, policy relay.Policy) (begin func()) {
	t.Helper()
	lease := d.leaseOf(5 * time.Second)
	db, err := d.open(dialect.Options{URL: d.url, Name: name, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Store(name, "", lease)
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Name: name, Database: store, Lease: lease, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Destinations: []relay.Destination{destination},
		Routes:       []relay.Route{{Match: "*", To: destination.Name, Policy: policy}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	close(ended) // until it begins
	t.Cleanup(func() {
		stop()
		<-ended
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() {
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
	}
}

// address is where the child says that it serves health checks and metrics.
func (p *process) address(t *testing.T) string {
	t.Helper()
	p.waitLog(t, `"listen":"`)
	return regexp.MustCompile(`"listen":"([^"]+)"`).FindStringSubmatch(p.stderr.String())[1]
}

// ask makes a GET request to a child and returns the status and the body.
func ask(t *testing.T, address, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// waitReady waits until /readyz answers with this status.
func (p *process) waitReady(t *testing.T, want int) {
	t.Helper()
	address := p.address(t)
	eventually(t, patience, func() error {
		if code, body := ask(t, address, "/readyz"); code != want {
			return fmt.Errorf("/readyz answers %d, %s", code, body)
		}
		return nil
	})
}
