package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

func (p *program) migrateCommand() *cobra.Command {
	cmd := group("migrate", "Make and inspect the tables of outboxd", "")
	cmd.AddCommand(p.migrateUpCommand(), p.migrateStatusCommand(), p.migratePrintCommand())
	return cmd
}

func (p *program) migrateUpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Bring the tables to the version of this outboxd; safe to repeat", Args: noArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := p.load()
			if err != nil {
				return err
			}
			applied, err := l.migrate(cmd.Context(), p.env)
			if err != nil {
				return err
			}
			if len(applied) == 0 {
				fmt.Fprintln(p.stderr, "nothing to do: the tables are up to date")
			}
			for _, name := range applied {
				fmt.Fprintln(p.stderr, "applied "+name)
			}
			return nil
		},
	}
}

// schemaRow is what `migrate status` prints, in the words of dialect.SchemaStatus.
type schemaRow struct {
	State   string `json:"state"`
	Version int    `json:"version"`
	Needed  int    `json:"needed"`
	Server  string `json:"server"`
}

func (p *program) migrateStatusCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "status", Short: "Say which version the tables have: exit 0 if a relay can work with them, else 6", Args: noArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			db, err := p.open()
			if err != nil {
				return err
			}
			defer db.Close()
			status, err := db.CheckSchema(cmd.Context())
			if err != nil {
				return err
			}
			row := schemaRow{string(status.State), status.Version, status.Needed, status.Server}
			if err := rows(p.stdout, out, []schemaRow{row}); err != nil {
				return err
			}
			return status.Err()
		},
	}
	out.flag(cmd)
	return cmd
}

func (p *program) migratePrintCommand() *cobra.Command {
	var engine, schema, file string
	cmd := &cobra.Command{
		Use: "print", Short: "Print the SQL of the migrations, for the database's own shell or another migration tool", Args: noArgs(),
		Long: "print writes the migrations to the standard output; it needs no database. The engine is that of the database URL,\n" +
			"where there is one, unless --dialect names it. Each file inserts its own version row, so that Flyway, Alembic or a\n" +
			"person can run it.",
		RunE: func(*cobra.Command, []string) error {
			if engine == "" {
				engine = p.engine()
			}
			if err := checkEngine(engine, schema); err != nil {
				return err
			}
			if file != "" {
				text, err := script(engine, file+".sql", schema)
				if errors.Is(err, fs.ErrNotExist) {
					return usagef("--script: %s has no script %q: roles (not SQLite) or drop", engine, file)
				}
				fmt.Fprint(p.stdout, text)
				return err
			}
			all, err := migrations(engine, schema)
			if err != nil {
				return usagef("--schema: %w", err)
			}
			for _, m := range all {
				fmt.Fprintf(p.stdout, "-- %s\n%s\n", m.Name, strings.TrimRight(m.SQL, "\n"))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&engine, "dialect", "", "`engine` to print for: postgres, mysql (MariaDB too) or sqlite")
	flags.StringVar(&schema, "schema", "", "`name` of the schema, on MySQL of the database; without it, the one in use")
	flags.StringVar(&file, "script", "", "print another `script` instead: roles or drop")
	return cmd
}

// engine is that of the database URL, or PostgreSQL where there is none yet.
func (p *program) engine() string {
	l, err := p.load()
	if err != nil {
		return dialect.Postgres
	}
	url, err := l.config.Database.source().read(p.env)
	if err != nil {
		return dialect.Postgres
	}
	engine, _, err := dialect.EngineOf(url.Reveal())
	if err != nil {
		return dialect.Postgres
	}
	return engine
}
