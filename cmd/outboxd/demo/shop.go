package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/outboxd/outboxd/outbox"
)

// order is what customers order. It is also what is sent.
type order struct {
	Number   int    `json:"order"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`

	trouble string // why the shop rolls it back; empty: it commits
}

// The orders that the steps are about.
const (
	overloaded = 103 // the receiver says: not now
	cutOff     = 104 // its answer is lost
	killed     = 105 // its relay is killed
	refused    = 107 // the receiver says: never
)

// orders are those of the day.
func orders() []order {
	return []order{
		{Number: 101, Amount: "19.90", Currency: "EUR"},
		{Number: 102, Amount: "5.00", Currency: "EUR"},
		{Number: overloaded, Amount: "42.00", Currency: "EUR"},
		{Number: cutOff, Amount: "120.00", Currency: "EUR"},
		{Number: killed, Amount: "64.50", Currency: "EUR"},
		{Number: 106, Amount: "8.00", Currency: "EUR", trouble: "card declined"},
		{Number: refused, Amount: "310.00", Currency: "CHF"},
		{Number: 108, Amount: "27.40", Currency: "EUR"},
		{Number: 109, Amount: "99.00", Currency: "EUR", trouble: "sold out"},
		{Number: 110, Amount: "12.00", Currency: "EUR"},
	}
}

// shop is an application with a database.
type shop struct{ tables }

// errRolledBack ends a transaction in the way of a shop that found a reason against the order.
var errRolledBack = errors.New("rolled back")

// take writes an order and the command to charge it in one transaction: this is all that an application does. It returns
// the message's id, also of a transaction that was rolled back.
func (s shop) take(ctx context.Context, o order) (id string, err error) {
	payload, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.sql("INSERT INTO {orders} (order_no, amount, currency) VALUES (?, ?, ?)"), o.Number, o.Amount, o.Currency)
		if err != nil {
			return err
		}
		ids, err := s.outbox().Write(ctx, tx, outbox.Message{
			AggregateType: "orders", AggregateID: strconv.Itoa(o.Number), Type: "charge_order", Payload: payload,
		})
		if err != nil {
			return err
		}
		id = ids[0]
		if o.trouble != "" {
			return errRolledBack
		}
		return nil
	})
	if errors.Is(err, errRolledBack) && o.trouble != "" {
		err = nil
	}
	return id, err
}
