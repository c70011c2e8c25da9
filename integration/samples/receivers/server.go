//go:build ignore

// A web server around receive of docs/receiving.md, which is compiled with it, and a charge. Its port is the argument.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

var errNever = errors.New("no order")

func charge(ctx context.Context, tx *sql.Tx, body []byte) (string, error) {
	var command struct {
		Order int64
		Until string
	}
	if json.Unmarshal(body, &command) != nil {
		return "", errNever
	}
	made, err := tx.ExecContext(ctx, "INSERT INTO charge (order_id) VALUES (?)", command.Order)
	if err != nil {
		return "", err
	}
	if err := wait(command.Until); err != nil {
		return "", err
	}
	number, err := made.LastInsertId()
	return fmt.Sprintf(`{"id":"charge-%d"}`, number), err
}

// wait is how long the work takes: until a file is there, if one is named.
func wait(until string) error {
	if until == "" {
		return nil
	}
	if err := os.WriteFile(until+".begun", nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(until); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func main() {
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?innodb_lock_wait_timeout=1", os.Getenv("SHOP_USER"), os.Getenv("SHOP_PASSWORD"),
		os.Getenv("SHOP_HOST"), os.Getenv("SHOP_PORT"), os.Getenv("SHOP_DATABASE")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		status, answer, err := receive(context.WithoutCancel(r.Context()), db, r.Header, body)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status, answer = 500, "it did not work"
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
