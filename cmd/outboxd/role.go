package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// roleOf is the role of roles.sql that a command needs; empty where the error of the command itself tells, as run does.
func roleOf(cmd *cobra.Command) string {
	switch cmd.Name() {
	case "get":
		if cmd.Flags().Changed("payload") {
			return "outbox_corrector"
		}
		return "outbox_reader"
	case "list", "errors", "status", "check", "stats", "why", "audit", "operations", "instance", "compat", "evidence":
		return "outbox_reader"
	case "replay", "retry-now", "cancel", "resolve", "pause", "resume":
		return "outbox_operator"
	case "set", "purge":
		return "outbox_relay"
	case "correct", "drill":
		return "outbox_corrector"
	case "enqueue":
		return "outbox_application"
	case "up":
		return "outbox_migrator"
	}
	return ""
}

// withRole adds to a refusal of rights which role the command needs. SQLite has none.
func (p *program) withRole(cmd *cobra.Command, err error) error {
	role := roleOf(cmd)
	if dialect.ClassOf(err) != dialect.Rights || role == "" || p.engine() == dialect.SQLite {
		return err
	}
	return fmt.Errorf("%w; %s needs the role %s", err, cmd.CommandPath(), role)
}
