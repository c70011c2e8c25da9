package dialect

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"
)

// Check is one thing that a diagnosis looks at.
type Check struct {
	Name  string
	Grant string // the mend where the role may not look; empty where what it lacks is told as a fault
	Look  func(context.Context, sqlx.ExtContext) ([]Finding, error)
}

// Sound makes a check of one that only says what is wrong; good is told where nothing is.
func Sound(name, good string, look func(context.Context, sqlx.ExtContext) error) Check {
	return Check{Name: name, Look: func(ctx context.Context, q sqlx.ExtContext) ([]Finding, error) {
		return []Finding{Fine(name, "%s", good)}, look(ctx, q)
	}}
}

// Examine runs the checks one after the other, each by itself, so that one that fails says nothing about the next.
func (i *Inspector) Examine(ctx context.Context, checks []Check) (findings []Finding) {
	for _, c := range checks {
		var found []Finding
		err := i.Wrap(c.Name, i.Read(ctx, func(q sqlx.ExtContext) (err error) {
			found, err = c.Look(ctx, q)
			return err
		}))
		switch {
		case err == nil:
			findings = append(findings, found...)
		case c.Grant != "" && ClassOf(err) == Rights:
			findings = append(findings, Warn(c.Name, c.Grant, "this role may not look"))
		default:
			findings = append(findings, FoundError(c.Name, err))
		}
	}
	return findings
}

// errBack ends a transaction whose work is not meant to stay.
var errBack = errors.New("rolled back")

// TryWrite writes a message as an application does and takes it back. role is who does it, for a sentence.
func (i *Inspector) TryWrite(ctx context.Context, role string) Finding {
	const check = "insert"
	err := i.Write(ctx, func(q sqlx.ExtContext) error {
		if err := i.execOn(ctx, q, `INSERT INTO /*schema.*/outbox (type, payload) VALUES ('outboxd.doctor', '{}')`); err != nil {
			return err
		}
		return errBack
	})
	if errors.Is(err, errBack) {
		return Fine(check, "%s wrote a message, which was rolled back", role)
	}
	return FoundError(check, i.Wrap(check, err))
}
