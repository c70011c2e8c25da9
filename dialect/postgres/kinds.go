package postgres

const textNextGroup = `
SELECT routing_key, lapses, true AS pending FROM /*schema.*/outbox
WHERE due_at IS NOT NULL AND (routing_key, lapses) > (?::text, ?::int) ORDER BY routing_key, lapses LIMIT 1`

func nextGroup(routingKey string, lapses int) (query string, args []any) {
	return textNextGroup, []any{routingKey, lapses}
}

const (
	groupEnd = `SELECT * FROM (
  SELECT id, seq, routing_key, type, schema_version, state, created_at, resolved_at, created_at AS at FROM /*schema.*/outbox
  WHERE routing_key = ?::text AND lapses = ?::int AND due_at IS NOT NULL ORDER BY due_at`

	textGroupEnds = groupEnd + `, seq LIMIT ?::int) oldest
UNION
` + groupEnd + ` DESC, seq DESC LIMIT ?::int) newest`
)
