package mysql

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// What is to be sent, without locks. Argument: pairs of seq and lease.
const sqlLoad = `
SELECT o.seq, o.id, COALESCE(o.send_id, o.id) AS wire_key, o.aggregatetype, o.aggregateid, o.payload, o.content_type,
  o.headers, COALESCE(o.traceparent, '') AS traceparent, o.created_at
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$[0]', lease_id bigint PATH '$[1]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight'`

// Load implements relay.Store. The messages come in the order of the claims.
func (s *Store) Load(ctx context.Context, claims []relay.Claim) ([]relay.Message, error) {
	pairs := make(list[[2]int64], len(claims))
	place := make(map[int64]int, len(claims))
	for i, c := range claims {
		pairs[i], place[c.Seq] = [2]int64{c.Seq, int64(c.Lease)}, i
	}
	loaded := make([]relay.Message, len(claims))
	err := s.work.query(ctx, "load", func(rows *sqlx.Rows) error {
		var m relay.Message
		var seq int64
		err := rows.Scan(&seq, &m.ID, &m.WireKey, &m.AggregateType, &m.AggregateID, &m.Payload, &m.ContentType,
			&m.RawHeaders, &m.Traceparent, &m.CreatedAt)
		if err != nil {
			return err
		}
		if i := place[seq]; claims[i].ID == m.ID {
			m.Claim, m.CreatedAt = claims[i], m.CreatedAt.UTC()
			loaded[i] = m
		}
		return nil
	}, pairs.String())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(loaded, func(m relay.Message) bool { return m.ID == "" }), nil
}
