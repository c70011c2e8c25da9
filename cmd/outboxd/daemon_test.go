package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// opened is an outbox that a test opens and runs, as run does it.
func opened(t *testing.T, s *server, log *safeBuffer) *daemon {
	t.Helper()
	p := &program{env: s.env(), stdin: strings.NewReader(""), stdout: &safeBuffer{}, stderr: log}
	l, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	d := p.daemon("", l)
	d.file = "testdata/config/stdout.yaml"
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	d.serve(t.Context(), prometheus.NewRegistry())
	return d
}

// runs runs an outbox that was opened, until stop.
func (d *daemon) runs(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.run(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// TestPausedOnce holds that an outbox which is opened again in the same process is not paused again after somebody has
// resumed it.
func TestPausedOnce(t *testing.T) {
	t.Parallel()
	s, log := migrated(t), &safeBuffer{}
	d := opened(t, s, log)
	d.pauseOnce()
	stop := d.runs(t)
	eventually(t, "everything is paused", func() bool { return strings.Contains(log.String(), `"msg":"paused","target":"everything"`) })
	code, _, stderr := cli(t, s.env(), "resume", "--everything", "--wait", "--yes")
	stop()
	if code != exitOK {
		t.Fatalf("resume: exit %d: %s", code, stderr)
	}
	s.insert(3, "orders", "order_paid")
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	defer d.runs(t)()
	eventually(t, "all are sent", func() bool { return s.count("state = 'done'") == 3 })
}

// TestReloadWhileOpening holds that a reload and the opening of an outbox may come at once. The race detector looks on.
func TestReloadWhileOpening(t *testing.T) {
	t.Parallel()
	s, log := migrated(t), &safeBuffer{}
	d := opened(t, s, log)
	ctx, cancel := context.WithCancel(t.Context())
	var reloading sync.WaitGroup
	defer reloading.Wait()
	defer cancel()
	reloading.Go(func() {
		for ctx.Err() == nil {
			d.reload()
		}
	})
	eventually(t, "a reload", func() bool { return strings.Contains(log.String(), "configuration reloaded") })
	d.runs(t)()
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	d.runs(t)()
}
