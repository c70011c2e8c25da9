package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The proxies are what the fault tests stand on, so they have tests of their own.

func TestDatabaseProxies(t *testing.T) {
	onServers(t, databaseProxy)
}

func databaseProxy(t *testing.T, e engine) {
	// Statements with their arguments in them, and prepared ones.
	settings := map[string][]string{"postgres": {"", "binary_parameters=yes"}, "mysql": {"", "interpolateParams=false"}}[e.driver]
	d := e.empty(t, e)
	d.exec(t, "CREATE TABLE seen (n int)")
	insert := d.sql("INSERT INTO seen VALUES ($1)")
	rows := func(t *testing.T) error {
		if n := d.count(t, "SELECT count(*) FROM seen"); n != 1 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	}

	tests := map[string]func(t *testing.T, p *proxy, run func() chan error){
		"nothing": func(t *testing.T, p *proxy, run func() chan error) {
			if err := <-run(); err != nil || rows(t) != nil {
				t.Errorf("error %v, %v", err, rows(t))
			}
		},
		"a held question arrives at last": func(t *testing.T, p *proxy, run func() chan error) {
			trap := p.hold(asks("insert into seen"))
			result := run()
			trap.wait(t)
			if rows(t) == nil {
				t.Error("the statement ran while it was held")
			}
			trap.release()
			if err := <-result; err != nil || rows(t) != nil {
				t.Errorf("error %v, %v", err, rows(t))
			}
		},
		"a held answer tells of what is done": func(t *testing.T, p *proxy, run func() chan error) {
			trap := p.hold(answers("insert into seen"))
			result := run()
			trap.wait(t)
			eventually(t, patience, func() error { return rows(t) })
			trap.release()
			if err := <-result; err != nil {
				t.Error(err)
			}
		},
		"a cut question did nothing": func(t *testing.T, p *proxy, run func() chan error) {
			p.cutOne(asks("insert into seen"))
			if err := <-run(); err == nil || rows(t) == nil {
				t.Errorf("error %v, %v", err, rows(t))
			}
		},
		"a cut answer is of what is done": func(t *testing.T, p *proxy, run func() chan error) {
			p.cutOne(answers("insert into seen"))
			if err := <-run(); err == nil {
				t.Error("no error")
			}
			eventually(t, patience, func() error { return rows(t) })
		},
		"held, then cut": func(t *testing.T, p *proxy, run func() chan error) {
			trap := p.hold(asks("insert into seen"))
			result := run()
			trap.wait(t)
			trap.cut()
			if err := <-result; err == nil || rows(t) == nil {
				t.Errorf("error %v, %v", err, rows(t))
			}
			if err := <-run(); err != nil || rows(t) != nil {
				t.Errorf("afterwards: error %v, %v", err, rows(t))
			}
		},
		"away and back": func(t *testing.T, p *proxy, run func() chan error) {
			p.setDown(true)
			if err := <-run(); err == nil {
				t.Error("no error")
			}
			p.setDown(false)
			if err := <-run(); err != nil || rows(t) != nil {
				t.Errorf("error %v, %v", err, rows(t))
			}
		},
		"a black hole": func(t *testing.T, p *proxy, run func() chan error) {
			p.setSilent(true)
			result := run()
			p.setSilent(false)
			if err := <-result; err != nil {
				t.Logf("a byte was lost, which is no hang: %v", err)
			}
			if err := <-run(); err != nil {
				t.Error(err)
			}
		},
	}
	for name, test := range tests {
		for _, setting := range settings {
			t.Run(name+" "+setting, func(t *testing.T) {
				d.exec(t, "TRUNCATE TABLE seen")
				p, url := d.proxy(t, d.url)
				db := e.connect(t, url, d.name, setting)
				defer db.Close()
				test(t, p, func() chan error {
					result := make(chan error, 1)
					go func() {
						result <- onOneConnection(db, insert, 1)
					}()
					return result
				})
			})
		}
	}
}

// onOneConnection runs a statement once. The pool itself would run it again, on another connection, when lib/pq says that
// the first one is broken, even where the statement has taken effect.
func onOneConnection(db *sql.DB, query string, args ...any) error {
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, query, args...)
	return err
}

func TestDatabaseProxiesKnowTransactions(t *testing.T) {
	onServers(t, proxyKnowsTransactions)
}

func proxyKnowsTransactions(t *testing.T, e engine) {
	d := e.empty(t, e)
	d.exec(t, "CREATE TABLE seen (n int)")
	p, url := d.proxy(t, d.url)
	db := e.connect(t, url, d.name)
	defer db.Close()
	write := func() error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(t.Context(), "INSERT INTO seen VALUES (1)")
		return errors.Join(err, tx.Commit())
	}
	p.cutOne(commits(toClient, "insert into seen"))
	if err := write(); err == nil {
		t.Error("the answer to COMMIT was cut, and there is no error")
	}
	d.waitCount(t, patience, 1, "SELECT count(*) FROM seen")
	p.cutOne(commits(toServer, "delete from seen"))
	if err := write(); err != nil {
		t.Errorf("another transaction's COMMIT was cut: %v", err)
	}
}

func TestKafkaProxy(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 2)
	p := newKafkaProxy(t)
	client := kafkaClient(t, kgo.SeedBrokers(p.address()), kgo.DefaultProduceTopic(topic))
	defer client.Close()
	produce := func(value string) chan error {
		result := make(chan error, 1)
		client.Produce(t.Context(), &kgo.Record{Key: []byte("k"), Value: []byte(value)}, func(_ *kgo.Record, err error) { result <- err })
		return result
	}
	values := func() string {
		all := ""
		for _, r := range readTopic(t, topic) {
			all += string(r.Value)
		}
		return all
	}

	trap := p.hold(requests("Produce"))
	result := produce("a")
	trap.wait(t)
	if got := values(); got != "" {
		t.Errorf("records %q while the request is held", got)
	}
	trap.release()
	if err := <-result; err != nil {
		t.Fatal(err)
	}

	trap = p.hold(responses("Produce"))
	result = produce("b")
	trap.wait(t)
	if got := values(); got != "ab" {
		t.Errorf("records %q while the answer is held, want ab", got)
	}
	trap.cut()
	if err := <-result; err != nil { // sent again by its idempotent producer
		t.Fatal(err)
	}
	p.setDown(true)
	result = produce("c")
	p.setDown(false)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := values(); got != "abc" {
		t.Errorf("records %q, want abc", got)
	}
	for _, r := range readTopic(t, topic) {
		if string(r.Key) != "k" || place(r) == "" {
			t.Errorf("record %+v", r)
		}
	}
}
