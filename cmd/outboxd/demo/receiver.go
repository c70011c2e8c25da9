package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// retryAfter is what the receiver asks for when it is overloaded.
const retryAfter = 2 * time.Second

// receiver is the other side: it charges orders, over HTTP. It does the work and remembers the key in one transaction, and
// answers a key that it has seen with its first answer, without doing the work again.
type receiver struct {
	tables    tables
	forgetful bool // remembers no key
	url       string
	server    *http.Server
	ended     sync.WaitGroup
	goOn      chan struct{} // closed: the answer to the order that is cut off is due

	mu     sync.Mutex
	log    []visit
	francs bool // it takes Swiss francs
}

// visit is a request that came.
type visit struct {
	order, attempt, status int // status 0: no answer was given
	key, answer            string
	came, ended            time.Time // ended: answered, cut, or left by the relay
	charged                bool      // the work was done
	repeat                 bool      // the key was seen before, and nothing was done
}

// newReceiver listens on a free port of this machine.
func newReceiver(ctx context.Context, t tables, forgetful bool) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the receiver finds no free port on 127.0.0.1: %w", err)
	}
	r := &receiver{
		tables: t, forgetful: forgetful, goOn: make(chan struct{}),
		url: "http://" + listener.Addr().String() + "/charges",
	}
	r.server = &http.Server{
		Handler: r, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	r.ended.Go(func() { _ = r.server.Serve(listener) }) // it ends by close only
	return r, nil
}

func (r *receiver) close() {
	_ = r.server.Close()
	r.ended.Wait()
}

// ServeHTTP takes a charge. The first request of some orders ends badly, for the story's sake.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var o order
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil || json.Unmarshal(body, &o) != nil {
		http.Error(w, "no order", http.StatusBadRequest)
		return
	}
	key := req.Header.Get("Idempotency-Key")
	attempt, _ := strconv.Atoi(req.Header.Get("Outbox-Attempt")) // for people only
	n := r.arrived(visit{order: o.Number, attempt: attempt, key: key, came: time.Now()})
	defer r.left(n)
	first := len(r.visits(o.Number)) == 1
	switch {
	case first && o.Number == overloaded:
		r.answered(n, http.StatusServiceUnavailable, "overloaded", false)
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	case first && o.Number == cutOff && !r.wait(req):
		return
	}
	status, answer, repeat, err := r.charge(req.Context(), o, key)
	r.worked(n, err == nil && !repeat && status == http.StatusOK)
	switch {
	case err != nil:
		status, answer = http.StatusInternalServerError, "no database"
	case first && o.Number == cutOff:
		panic(http.ErrAbortHandler) // net/http cuts the connection: the work is done, and nobody is told
	case first && o.Number == killed:
		<-req.Context().Done() // until the relay is gone
		return
	}
	r.answered(n, status, answer, repeat)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// wait waits for the step that a request belongs to.
func (r *receiver) wait(req *http.Request) bool {
	select {
	case <-r.goOn:
		return true
	case <-req.Context().Done():
		return false
	}
}

// charge does the work once for each key.
func (r *receiver) charge(ctx context.Context, o order, key string) (status int, answer string, repeat bool, err error) {
	r.mu.Lock() // one at a time, so that nobody comes between the look and the work
	defer r.mu.Unlock()
	err = r.tables.transaction(context.WithoutCancel(ctx), func(tx *sql.Tx) error {
		seen := r.tables.sql("SELECT status, answer FROM {seen_keys} WHERE wire_key = ?")
		err := tx.QueryRowContext(ctx, seen, key).Scan(&status, &answer)
		if repeat = err == nil; repeat || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		status, answer = http.StatusOK, fmt.Sprintf("receipt-%d", o.Number)
		if o.Currency != "EUR" && !r.francs {
			status, answer = http.StatusUnprocessableEntity, "unknown currency "+o.Currency
		} else if err := r.work(ctx, tx, o); err != nil {
			return err
		}
		if r.forgetful {
			return nil
		}
		_, err = tx.ExecContext(ctx, r.tables.sql("INSERT INTO {seen_keys} (wire_key, status, answer) VALUES (?, ?, ?)"), key, status, answer)
		return err
	})
	return status, answer, repeat, err
}

// work is what must not happen twice.
func (r *receiver) work(ctx context.Context, tx *sql.Tx, o order) error {
	_, err := tx.ExecContext(ctx, r.tables.sql("INSERT INTO {charges} (charge_no, order_no, amount) "+
		"SELECT count(*) + 1, ?, ? FROM {charges}"), o.Number, o.Amount)
	return err
}

// arrived notes a request, and gives its place in the log.
func (r *receiver) arrived(v visit) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, v)
	return len(r.log) - 1
}

func (r *receiver) answered(n, status int, answer string, repeat bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log[n].status, r.log[n].answer, r.log[n].repeat = status, answer, repeat
}

func (r *receiver) worked(n int, charged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log[n].charged = charged
}

func (r *receiver) left(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log[n].ended = time.Now()
}

// visits are the requests of an order so far; of order 0, all.
func (r *receiver) visits(number int) (found []visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.log {
		if number == 0 || v.order == number {
			found = append(found, v)
		}
	}
	return found
}

// takeFrancs is the receiver's next release.
func (r *receiver) takeFrancs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.francs = true
}
