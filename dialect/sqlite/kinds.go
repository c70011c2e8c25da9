package sqlite

const textNextGroup = `
SELECT routing_key, lapses, true AS pending FROM outbox INDEXED BY outbox_due
WHERE due_at IS NOT NULL AND (routing_key, lapses) > (?, ?) ORDER BY routing_key, lapses LIMIT 1`

func nextGroup(routingKey string, lapses int) (query string, args []any) {
	return textNextGroup, []any{routingKey, lapses}
}

const (
	groupEnd = `SELECT * FROM (
  SELECT id, seq, routing_key, type, schema_version, state, created_at, resolved_at, created_at AS at FROM outbox INDEXED BY outbox_due
  WHERE routing_key = ? AND lapses = ? AND due_at IS NOT NULL ORDER BY due_at`

	textGroupEnds = groupEnd + `, seq LIMIT ?) oldest
UNION
` + groupEnd + ` DESC, seq DESC LIMIT ?) newest`
)
