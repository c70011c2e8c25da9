//go:build ignore

// Calls the snippet of Go, which is compiled with it, for each line of the standard input: port, character set, order, file
// of the payload. Says of each order whether it is paid.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
)

func main() {
	for {
		var port, charset, file string
		var order int64
		if _, err := fmt.Scanln(&port, &charset, &order, &file); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := pay(port, charset, order, file); err != nil {
			fmt.Println(order, "not paid:", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println(order, "paid")
	}
}

func pay(port, charset string, order int64, file string) error {
	payload, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	user, password, host, name := os.Getenv("SHOP_USER"), os.Getenv("SHOP_PASSWORD"), os.Getenv("SHOP_HOST"), os.Getenv("SHOP_DATABASE")
	dialect := os.Getenv("SHOP_DIALECT")
	source := fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?charset=%s", user, password, host, port, name, charset)
	if dialect == "postgres" {
		source = fmt.Sprintf("postgres://%s:%s@%s:%s/%s?sslmode=disable", user, password, host, port, name)
	}
	db, err := sql.Open(dialect, source)
	if err != nil {
		return err
	}
	defer db.Close()
	return PayOrder(context.Background(), db, order, payload)
}
