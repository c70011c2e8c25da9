// Command bench measures what the relay costs. It drains messages through the whole relay and, in the same process on the
// same tables, through the barest loop of the same statements, to a destination that does nothing and to Kafka; then it
// measures how long a message takes from its COMMIT to its acknowledgement. `make bench` runs it.
//
// Rates of one machine say little elsewhere; the ratio of two loops in one run does. So the loops take turns, and the
// median of their rounds counts.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	_ "github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/postgres"
)

type options struct {
	messages, payload, rounds, rate int
	latency                         time.Duration
	profile                         string
}

func main() {
	var o options
	flag.IntVar(&o.messages, "messages", 300_000, "how many messages a round drains")
	flag.IntVar(&o.payload, "payload", 200, "bytes of a payload")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each loop; the median counts")
	flag.IntVar(&o.rate, "rate", 1000, "messages per second of the latency run")
	flag.DurationVar(&o.latency, "latency", 20*time.Second, "how long the latency run takes")
	flag.StringVar(&o.profile, "cpuprofile", "", "a file for a CPU profile of the whole run, for go tool pprof")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	url, brokers := os.Getenv("OUTBOXD_TEST_POSTGRES_URL"), os.Getenv("OUTBOXD_TEST_KAFKA_BROKERS")
	if url == "" || brokers == "" {
		return fmt.Errorf("OUTBOXD_TEST_POSTGRES_URL and OUTBOXD_TEST_KAFKA_BROKERS have to be set: make bench does it")
	}
	t, err := newTables(ctx, url)
	if err != nil {
		return err
	}
	defer t.close()
	if o.profile != "" {
		profile, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer profile.Close()
		if err := pprof.StartCPUProfile(profile); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	fmt.Printf("%d messages of %d bytes a round, %d rounds, batches of %d; median\n\n", o.messages, o.payload, o.rounds, batch)
	fmt.Printf("%-28s %12s %8s %10s %10s\n", "", "messages/s", "ratio", "CPU s", "peak MiB")
	for _, to := range []target{&null{}, &broker{brokers: strings.Split(brokers, ",")}} {
		if err := compare(ctx, t, o, to); err != nil {
			return err
		}
	}
	fmt.Println()
	return latencies(ctx, t, o, strings.Split(brokers, ","))
}

// compare lets the bare loop and the relay take turns, and prints the median of each.
func compare(ctx context.Context, t *tables, o options, to target) error {
	if err := to.open(ctx); err != nil {
		return err
	}
	var bare, whole []usage
	for range o.rounds {
		for _, loop := range []struct {
			drain func(context.Context, *tables, target) error
			into  *[]usage
		}{{drainBare, &bare}, {drainRelay, &whole}} {
			if err := t.fill(ctx, o.messages, o.payload); err != nil {
				return err
			}
			u, err := measure(func() error { return loop.drain(ctx, t, to) })
			if err != nil {
				return err
			}
			if err := t.allDone(ctx, o.messages); err != nil {
				return err
			}
			*loop.into = append(*loop.into, u)
		}
	}
	b, w := median(bare), median(whole)
	n := float64(o.messages)
	fmt.Printf("%-28s %12.0f %8s %10.1f %10d\n", "bare loop, "+to.name(), n/b.wall.Seconds(), "", b.cpu.Seconds(), b.peak>>20)
	fmt.Printf("%-28s %12.0f %7.0f%% %10.1f %10d\n", "relay, "+to.name(), n/w.wall.Seconds(), 100*b.wall.Seconds()/w.wall.Seconds(), w.cpu.Seconds(), w.peak>>20)
	return to.close(ctx)
}

func median(rounds []usage) usage {
	slices.SortFunc(rounds, func(a, b usage) int { return int(a.wall - b.wall) })
	return rounds[len(rounds)/2]
}

// tables is an outbox of the bench's own, in a database that goes at the end.
type tables struct {
	admin *sql.DB
	name  string
	app   *sql.DB
	db    *postgres.DB
}

func newTables(ctx context.Context, url string) (*tables, error) {
	t := &tables{name: fmt.Sprintf("outboxd_bench_%d", os.Getpid())}
	var err error
	if t.admin, err = sql.Open("postgres", url); err != nil {
		return nil, err
	}
	if _, err := t.admin.ExecContext(ctx, "CREATE DATABASE "+t.name); err != nil {
		return nil, err
	}
	own, err := withDatabase(url, t.name)
	if err != nil {
		return nil, err
	}
	if t.app, err = sql.Open("postgres", own); err != nil {
		return nil, err
	}
	if t.db, err = postgres.Open(dialect.Options{URL: own, Name: "bench", Lease: lease}); err != nil {
		return nil, err
	}
	_, err = t.db.Migrate(ctx)
	return t, err
}

func (t *tables) close() {
	t.db.Close()
	t.app.Close()
	if _, err := t.admin.ExecContext(context.Background(), "DROP DATABASE "+t.name+" WITH (FORCE)"); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	t.admin.Close()
}

// fill empties the outbox and inserts n due messages.
func (t *tables) fill(ctx context.Context, n, payload int) error {
	for _, statement := range []string{
		"TRUNCATE outbox, outbox_lease, outbox_attempt",
		fmt.Sprintf(`INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
			SELECT '%s', (i %% 1000)::text, 'order_paid', repeat('x', %d) FROM generate_series(1, %d) i`, topic, payload, n),
		"VACUUM ANALYZE outbox",
		"CHECKPOINT",
	} {
		if _, err := t.app.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// allDone checks that a round did its work: each message done, by one attempt.
func (t *tables) allDone(ctx context.Context, n int) error {
	var done int
	err := t.app.QueryRowContext(ctx, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1").Scan(&done)
	if err == nil && done != n {
		err = fmt.Errorf("%d of %d messages are done by one attempt", done, n)
	}
	return err
}
