package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/cmd/outboxd/demo"
	"github.com/outboxd/outboxd/dialect"
)

func (p *program) demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole job in a minute, with nothing installed", Args: noArgs(),
		Long: "demo plays a shop, a receiver and the relay on this machine: orders committed and rolled back, an overloaded\n" +
			"receiver, a lost answer, a killed relay, a refused order and its replay. It ends with a balance and exits 0 only\n" +
			"if that holds. It uses a file of SQLite in a temporary folder, and leaves nothing behind.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.URL != "" {
				if o.Engine, err = serverOf(o.URL); err != nil {
					return err
				}
			}
			if o.Program, err = os.Executable(); err != nil {
				return fmt.Errorf("the demo does not find its own program: %w", err)
			}
			o.Command = p.asCalled(o.Program)
			// A write to a pipe that nobody reads is an error then, and no end: the demo cleans up.
			pipes := make(chan os.Signal, 1)
			signal.Notify(pipes, syscall.SIGPIPE)
			defer signal.Stop(pipes)
			_, plain := get(p.env, "NO_COLOR")
			o.In, o.Out, o.Colour = p.stdin, p.stdout, isTerminal(p.stdout) && !plain
			o.Environ, o.Open = unread(os.Environ()), openDemo
			return demo.Play(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Auto, "auto", false, "do not wait for Enter between the steps")
	flags.StringVar(&o.URL, "db", "", "play it on a server, in a schema of its own that is dropped at the end: `URL`")
	flags.BoolVar(&o.Keep, "keep", false, "leave the tables, and say how to look at them")
	flags.BoolVar(&o.Forgetful, "forgetful", false, "let the receiver forget its keys, and see the balance fail")
	return cmd
}

// serverOf is the engine of a URL that leads to a server.
func serverOf(url string) (engine string, err error) {
	engine, _, err = dialect.EngineOf(url)
	switch {
	case err != nil:
		return "", usagef("--db: %w", err)
	case engine == dialect.SQLite:
		return "", usagef("--db wants the URL of a server; without --db, the demo makes a file of SQLite by itself")
	}
	return engine, nil
}

// asCalled is how a person calls this program again, so that the configuration named there is what counts: go run has
// taken its binary away by then, and a variable of the environment would win over the file.
func (p *program) asCalled(executable string) string {
	call := os.Args[0]
	if strings.Contains(filepath.ToSlash(executable), "/go-build") {
		call = "go run ./cmd/outboxd"
	}
	var unset []string
	for _, name := range envNames() {
		if _, there := p.env(name); there {
			unset = append(unset, "-u "+name)
		}
	}
	if len(unset) > 0 {
		call = "env " + strings.Join(unset, " ") + " " + call
	}
	return call
}

// unread leaves out what outboxd would read: the demo's processes have a configuration of their own.
func unread(environ []string) []string {
	return slices.DeleteFunc(environ, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == envFallback || slices.Contains(envNames(), name)
	})
}

func openDemo(url, schema string) (demo.Database, error) {
	db, err := openEngine(dialect.Options{URL: url, Schema: schema})
	if err != nil {
		return nil, failf(exitConfiguration, "database: %w", err)
	}
	played, ok := db.(demo.Database)
	if !ok {
		return nil, failf(exitUsage, "--db: the demo is not played on this kind of database")
	}
	return played, nil
}
