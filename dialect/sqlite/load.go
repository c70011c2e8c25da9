package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// What is to be sent. The driver gives nil for an empty blob, so whether there is one is told apart. ?1 seq, ?2 id, ?3
// lease.
const sqlLoad = `
SELECT coalesce(send_id, id) AS wirekey, aggregatetype, aggregateid, payload, payload IS NOT NULL AS there, content_type AS contenttype,
  headers AS rawheaders, coalesce(traceparent, '') AS traceparent, created_at AS created_us
FROM outbox WHERE seq = ?1 AND id = ?2 AND lease_id = ?3 AND state = 'in_flight'`

// messageRow is a row of sqlLoad.
type messageRow struct {
	relay.Message
	There         bool
	CreatedMicros int64 `json:"created_us"`
}

func (r messageRow) message(c relay.Claim) relay.Message {
	m := r.Message
	m.Claim, m.CreatedAt = c, time.UnixMicro(r.CreatedMicros).UTC()
	if r.There && m.Payload == nil {
		m.Payload = []byte{}
	}
	return m
}

// Load implements relay.Store. The messages come in the order of the claims.
func (s *Store) Load(ctx context.Context, claims []relay.Claim) ([]relay.Message, error) {
	messages := make([]relay.Message, 0, len(claims))
	err := s.read(ctx, "load", func(ctx context.Context, q *sqlx.DB) error {
		return prepared(ctx, q, sqlLoad, func(one *sqlx.Stmt) error {
			for _, c := range claims {
				var row messageRow
				err := one.GetContext(ctx, &row, c.Seq, c.ID, int64(c.Lease))
				if errors.Is(err, sql.ErrNoRows) {
					continue
				}
				if err != nil {
					return err
				}
				messages = append(messages, row.message(c))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}
