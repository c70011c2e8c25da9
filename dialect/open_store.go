package dialect

// Store makes the relay's Store on this database. Its statements end with d, by Close.
func (d *DB) Store() (*Postgres, error) {
	queries := postgresQueries()
	for name, text := range queries {
		rendered, err := render(text, d.schema)
		if err != nil {
			return nil, err
		}
		queries[name] = rendered
	}
	return newPostgres(d.relay, postgresConnections{work: d.work, keep: d.keep, queries: queries, settings: d.settings, lease: d.lease}), nil
}
