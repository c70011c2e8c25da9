package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program is what every command works with: the streams, the environment and the flags that all commands share.
type program struct {
	env            lookup
	names          []string // of all variables that are set
	stdin          io.Reader
	stdout, stderr io.Writer
	hangups        *hangups // nil: this process gets no signals

	configFiles []string // more than one for run only
	logLevel    string
}

// run executes one command line. An error is printed here and nowhere else.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		err = p.withRole(cmd, err)
		if err.Error() != "" {
			fmt.Fprintln(p.stderr, wording(err))
		}
	}
	return exitCode(ctx, err)
}

// wording begins an error with the program's name; mistakes in a file begin with the file's, as editors read it.
func wording(err error) string {
	if _, ok := errors.AsType[*configError](err); ok {
		return err.Error()
	}
	return "outboxd: " + err.Error()
}

func (p *program) root() *cobra.Command {
	root := group("outboxd", "Transactional outbox relay: from an INSERT to done",
		"outboxd takes the messages that applications wrote into the outbox table and sends them to their destinations.\n"+
			"It is not a mail server.")
	root.PersistentFlags().StringArrayVarP(&p.configFiles, "config", "c", nil, "configuration `file` (or "+envConfig+")")
	root.PersistentFlags().StringVar(&p.logLevel, "log-level", "", "debug, info, warn or error (or OUTBOXD_LOG_LEVEL)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s; see %s --help", flagWords(err), cmd.CommandPath())
	})
	root.AddCommand( // to set up and to run
		p.initCommand(), p.migrateCommand(), p.configCommand(), p.destCommand(), p.runCommand(), p.instanceCommand(), p.purgeCommand(), p.versionCommand(),
	)
	root.AddCommand( // to write and to try
		p.demoCommand(), p.enqueueCommand(), p.snippetCommand(), p.receiveCommand(),
	)
	root.AddCommand( // to look
		p.statusCommand(), p.errorsCommand(), p.listCommand(), p.getCommand(), p.whyCommand(), p.statsCommand(), p.checkCommand(), p.auditCommand(),
		p.operationsCommand(), p.doctorCommand(), p.compatCommand(), p.evidenceCommand(),
	)
	root.AddCommand( // to act
		p.replayCommand(), p.retryNowCommand(), p.correctCommand(), p.cancelCommand(), p.resolveCommand(), p.pauseCommand(), p.resumeCommand(), p.drillCommand(),
	)
	return root
}

// flagWords says what is wrong with a flag's value in our words, where the flags' library has those of the Go language.
func flagWords(err error) string {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err.Error()
	}
	words := wrong.Unwrap().Error()
	switch wrong.GetFlag().Value.Type() {
	case "int":
		words = "wants a whole number"
	case "float64":
		words = "wants a number"
	case "duration":
		words = "wants " + durationWords
	}
	return "--" + wrong.GetFlag().Name + ": " + words
}

// group makes a command that only holds others. Without an argument it shows its help; an unknown one is a mistake.
func group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			cmd.SuggestionsMinimumDistance = 2
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return usagef("unknown command %q%s; see %s --help", args[0], hint, cmd.CommandPath())
		},
	}
}

// exactArgs wants n arguments.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func noArgs() cobra.PositionalArgs { return exactArgs(0, "no arguments") }

// someIDs wants one argument or more.
func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s takes the id of a message, or several; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// load reads the configuration that flags and environment name.
func (p *program) load() (*loaded, error) {
	switch len(p.configFiles) {
	case 0:
		file, _ := get(p.env, envConfig)
		return p.loadFile(file)
	case 1:
		return p.loadFile(p.configFiles[0])
	}
	return &loaded{decoder: newDecoder()}, usagef("--config: give one file; only run takes several, each of an outbox of its own")
}

// loadFile reads a configuration file, if there is one, with the environment and the flags over it.
func (p *program) loadFile(file string) (*loaded, error) {
	env := p.env
	if p.logLevel != "" {
		env = func(name string) (string, bool) {
			if name == "OUTBOXD_LOG_LEVEL" {
				return p.logLevel, true
			}
			return p.env(name)
		}
	}
	l, err := load(file, env)
	l.warnMisspelt(p.names)
	return l, err
}
