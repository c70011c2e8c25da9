package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/outboxd/outboxd/relay"
)

const (
	databaseLimit = 30 * time.Second // since the database last answered, for readiness
	minTickLimit  = time.Minute      // since a loop last went round, for liveness; more where the lease is long
)

// snapshotter is a *relay.Relay, or what a test makes of it.
type snapshotter func() relay.Snapshot

// health answers /livez, /readyz and /metrics. None of them depends on a destination: one that is down is no reason to
// restart the relay or to take it away.
type health struct {
	outbox  string // its name, where the process has several
	lease   time.Duration
	stopped func() error                // the error of the daemon's context: not nil from the signal on
	running atomic.Pointer[snapshotter] // nil while the database or its schema is waited for
	waiting atomic.Pointer[string]      // why, in words
}

func (h *health) snapshot() relay.Snapshot {
	if snapshot := h.running.Load(); snapshot != nil {
		return (*snapshot)()
	}
	return relay.Snapshot{}
}

// live says which loop stands still. While the database is waited for, no loop runs and all is well; during a stop they
// end one after the other.
func (h *health) live() error {
	if h.stopped() != nil {
		return nil
	}
	limit := max(minTickLimit, 2*h.lease)
	ticks := h.snapshot().Ticks
	for _, loop := range slices.Sorted(maps.Keys(ticks)) {
		if since := time.Since(ticks[loop]); since > limit {
			return fmt.Errorf("loop %s stands still for %s", loop, since.Round(time.Second))
		}
	}
	return nil
}

// ready says why the relay does not work: it waits for the database or its schema, may not work on
// the outbox, lost the database, or stops.
func (h *health) ready() error {
	if why := h.waiting.Load(); why != nil {
		return errors.New(*why)
	}
	snapshot := h.snapshot()
	switch {
	case h.stopped() != nil:
		return errors.New("stopping")
	case h.running.Load() == nil:
		return errors.New("starting")
	case snapshot.Refused != "":
		return errors.New(snapshot.Refused)
	case time.Since(snapshot.DatabaseSeen) > databaseLimit:
		return fmt.Errorf("the database has not answered for more than %s", short(databaseLimit))
	}
	return nil
}

// handler answers for all outboxes of the process. Where one is not well, it is named, and the others do not hide it.
func handler(series prometheus.Gatherer, outboxes ...*health) http.Handler {
	mux := http.NewServeMux()
	probe := func(check func(*health) error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			var wrong []string
			for _, h := range outboxes {
				if err := check(h); err != nil {
					wrong = append(wrong, joinWords(h.outbox, err.Error()))
				}
			}
			if len(wrong) > 0 {
				http.Error(w, strings.Join(wrong, "\n"), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	mux.HandleFunc("GET /livez", probe((*health).live))
	mux.HandleFunc("GET /readyz", probe((*health).ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(series, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// joinWords says of which outbox something is, where there are several.
func joinWords(outbox, words string) string {
	if outbox == "" {
		return words
	}
	return outbox + ": " + words
}

// serve listens until stop is called. An address that is taken, by a second relay on the host, is a warning: the relay's
// work does not hang on its health checks.
func serve(ctx context.Context, listen string, handler http.Handler, log *slog.Logger) (stop func()) {
	if listen == "off" {
		return func() {}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		log.Warn("no health checks and no metrics: the address cannot be had; set http.listen to another one, or off",
			"listen", listen, "err", err)
		return func() {}
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	log.Info("health checks and metrics", "listen", listener.Addr().String())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends by Close only
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}
