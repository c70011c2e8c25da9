package mysql

func nextGroup(routingKey string, lapses int) (query string, args []any) {
	return sqlRoutingKeys, []any{routingKey, lapses, routingKey}
}

const (
	groupEnd = `SELECT * FROM (
  SELECT id, seq, routing_key, type, schema_version, state, created_at, NULL AS resolved_at, created_at AS at FROM /*schema.*/outbox FORCE INDEX (outbox_due)
  WHERE routing_key = ? AND lapses = ? AND due_at < TIMESTAMP'` + notPending + `' ORDER BY `

	textGroupEnds = groupEnd + `lapses, due_at, seq LIMIT ?) oldest
UNION
` + groupEnd + `lapses DESC, due_at DESC, seq DESC LIMIT ?) newest`
)
