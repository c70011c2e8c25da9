package dialect

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// instanceValue is the value of the instance in outbox_control.
type instanceValue struct {
	Name  string `json:"name"`
	Actor string `json:"actor"`
	Note  string `json:"note,omitempty"`
}

// Instance returns the name of the instance that the outbox belongs to, "" for none.
func (i *Inspector) Instance(ctx context.Context) (name string, err error) {
	err = i.Read(ctx, func(q sqlx.ExtContext) error {
		name, err = i.instance(ctx, q)
		return err
	})
	return name, i.Wrap("instance", err)
}

func (i *Inspector) instance(ctx context.Context, q sqlx.ExtContext) (string, error) {
	var values []string
	if err := i.selectOn(ctx, q, &values, i.Operations.Instance); err != nil || len(values) == 0 {
		return "", err
	}
	var v instanceValue
	if json.Unmarshal([]byte(values[0]), &v) != nil || v.Name == "" {
		return values[0], nil // Somebody wrote it by hand: it names none of ours, and nothing is sent until it is set anew.
	}
	return v.Name, nil
}

// SetInstance makes the outbox belong to an instance, with who did it and why, and writes it down as an operation. It
// returns the name before, "" for none.
func (i *Inspector) SetInstance(ctx context.Context, name, actor, note string) (before string, err error) {
	err = i.Write(ctx, func(q sqlx.ExtContext) error {
		if before, err = i.instance(ctx, q); err != nil {
			return err
		}
		value, err := json.Marshal(instanceValue{name, actor, note})
		if err != nil {
			return err
		}
		if err := i.execOn(ctx, q, i.Operations.SetInstance, string(value)); err != nil {
			return err
		}
		return i.did(ctx, q, relay.OpInstance, map[string]string{"instance": name, "before": before}, actor, note, 1)
	})
	return before, i.Wrap("set the instance", err)
}

// Did writes down, as an operation that is applied, what somebody did without a relay. filter becomes a JSON object.
func (i *Inspector) Did(ctx context.Context, op relay.Op, filter any, actor, note string, affected int) error {
	return i.Wrap("write the operation", i.Write(ctx, func(q sqlx.ExtContext) error { return i.did(ctx, q, op, filter, actor, note, affected) }))
}

func (i *Inspector) did(ctx context.Context, q sqlx.ExtContext, op relay.Op, filter any, actor, note string, affected int) error {
	text, err := json.Marshal(filter)
	if err != nil {
		return err
	}
	return i.execOn(ctx, q, i.Operations.Did, NewUUID(), string(op), string(text), actor, note, affected)
}

// Instance implements relay.Instances.
func (o *Operator) Instance(ctx context.Context) (string, error) {
	of, err := o.Inspector.Instance(ctx)
	if err != nil || of != "" || o.Own == "" {
		return of, err
	}
	value, err := json.Marshal(instanceValue{Name: o.Own, Actor: "relay " + o.Relay})
	if err != nil {
		return "", err
	}
	err = o.Inspector.Write(ctx, func(q sqlx.ExtContext) error {
		if err := o.Inspector.execOn(ctx, q, o.Inspector.Operations.KeepInstance, string(value)); err != nil {
			return err
		}
		of, err = o.Inspector.instance(ctx, q)
		return err
	})
	return of, o.Inspector.Wrap("instance", err)
}

// Owns gives relay.ErrForeign unless the outbox, as q sees it, belongs to the relay's own instance, or to none as the relay.
func (o *Operator) Owns(ctx context.Context, q sqlx.ExtContext) error {
	of, err := o.Inspector.instance(ctx, q)
	if err == nil && of != o.Own {
		err = relay.ErrForeign
	}
	return err
}
