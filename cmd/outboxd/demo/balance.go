package demo

import (
	"context"
	"fmt"
)

// balance is what the tables and the receiver's record say at the end. Nothing of it is assumed.
type balance struct {
	Committed  int // orders in the shop's table
	RolledBack int // orders that the shop tried and that are not there
	Messages   int // in the outbox
	Done       int // of them
	Sends      int // requests at the receiver
	Effects    int // charges
	Dropped    int // requests that the receiver knew by their key
	Lost       int // orders without a charge
	Ghosts     int // charges without an order
	Doubles    int // orders charged more than once
}

// balanceOf counts.
func balanceOf(ctx context.Context, t tables, r *receiver, tried int) (b balance, err error) {
	for _, c := range []struct {
		into  *int
		query string
	}{
		{&b.Committed, "SELECT count(*) FROM {orders}"},
		{&b.Messages, "SELECT count(*) FROM {outbox}"},
		{&b.Done, "SELECT count(*) FROM {outbox} WHERE state = 'done'"},
		{&b.Effects, "SELECT count(*) FROM {charges}"},
		{&b.Lost, "SELECT count(*) FROM {orders} o WHERE NOT EXISTS (SELECT 1 FROM {charges} c WHERE c.order_no = o.order_no)"},
		{&b.Ghosts, "SELECT count(*) FROM {charges} c WHERE NOT EXISTS (SELECT 1 FROM {orders} o WHERE o.order_no = c.order_no)"},
		{&b.Doubles, "SELECT count(*) FROM (SELECT order_no FROM {charges} GROUP BY order_no HAVING count(*) > 1) d"},
	} {
		if *c.into, err = t.count(ctx, c.query); err != nil {
			return balance{}, err
		}
	}
	b.RolledBack = tried - b.Committed
	for _, v := range r.visits(0) {
		b.Sends++
		if v.repeat {
			b.Dropped++
		}
	}
	return b, nil
}

func (b balance) String() string {
	return fmt.Sprintf("committed %d · rolled back %d · sends %d · effects %d · duplicates dropped %d · lost %d",
		b.Committed, b.RolledBack, b.Sends, b.Effects, b.Dropped, b.Lost)
}

// holds tells what is wrong with the balance, if anything is.
func (b balance) holds() error {
	if b.Committed == b.Effects && b.Messages == b.Committed && b.Done == b.Messages && b.Lost+b.Ghosts+b.Doubles == 0 && b.Committed > 0 {
		return nil
	}
	return fmt.Errorf("the balance does not hold: of %d orders %d are lost and %d charged more than once, %d charges have no order, and %d of %d messages are done",
		b.Committed, b.Lost, b.Doubles, b.Ghosts, b.Done, b.Messages)
}
