package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// operator takes what people ask of the relays, and tells what came of it.
type operator interface {
	Preview(ctx context.Context, op relay.Operation, memory dialect.Memory) (dialect.Preview, error)
	Ask(ctx context.Context, op relay.Operation) (id string, err error)
	Did(ctx context.Context, op relay.Op, filter any, actor, note string, affected int) error
	Operation(ctx context.Context, id string) (dialect.Operation, error)
	Asked(ctx context.Context, open bool, limit int) ([]dialect.Operation, error)
	Record(ctx context.Context, op relay.Operation, told dialect.Drill) (id string, err error)
	Corrected(ctx context.Context, message string, operations []string) ([]string, error)
	Relays(ctx context.Context) ([]dialect.RelayStatus, error)
}

// request is an operation as a command line asks for it.
type request struct {
	relay.Operation
	correcting   *correcting // of correct
	yes          bool        // ask no person
	wait         bool        // until it is applied
	requireMatch bool
	expected     int // how many messages it may change; 0: nobody knows
}

// flags are those of all commands that ask for an operation.
func (r *request) flags(flags *pflag.FlagSet) {
	flags.StringVar(&r.Note, "note", "", "why, for whoever looks later")
	flags.BoolVar(&r.yes, "yes", false, "ask no question")
	flags.BoolVar(&r.wait, "wait", false, "wait until a relay has applied it, and tell what came of it")
	flags.BoolVar(&r.DryRun, "dry-run", false, "let a relay count what it would change, and change nothing; it asks no question")
}

// filterFlags are those of commands for the messages of a filter.
func (r *request) filterFlags(flags *pflag.FlagSet) {
	r.flags(flags)
	filterFlags(flags, &r.Order.Filter)
	flags.IntVar(&r.Order.Limit, "limit", 0, "change at most so many messages")
	flags.Float64Var(&r.Order.Rate, "rate", 0, "change so many messages a second")
	flags.BoolVar(&r.requireMatch, "require-match", false, "exit with 5 where there is nothing to change")
}

// keyFlags are those of commands that send messages again.
func (r *request) keyFlags(cmd *cobra.Command) {
	cmd.Flags().Var(wireKey{&r.Order.WireKey, relay.NewKey}, "new-key", "send under a new idempotency key")
	cmd.Flags().Var(wireKey{&r.Order.WireKey, relay.SameKey}, "same-key", "send under the idempotency key of before")
	for _, name := range []string{"new-key", "same-key"} {
		cmd.Flags().Lookup(name).NoOptDefVal = "true"
	}
	cmd.Flags().BoolVar(&r.Order.Force, "force", false, "although an earlier send may have taken effect: look at the receiver first")
}

// wireKey is a flag that says under which key to send.
type wireKey struct {
	to    *relay.WireKey
	value relay.WireKey
}

// String is part of pflag.Value.
func (w wireKey) String() string { return fmt.Sprint(w.to != nil && *w.to == w.value && w.value != "") }

// Set is part of pflag.Value.
func (w wireKey) Set(text string) error {
	if text != "true" || *w.to != "" {
		return errors.New("one of --new-key and --same-key, without a value")
	}
	*w.to = w.value
	return nil
}

// Type is part of pflag.Value.
func (w wireKey) Type() string { return "bool" }

func (p *program) replayCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpReplay}}
	cmd := p.operationCommand(r, "replay [ID…]", "Send failed messages again, or with --state done such as were done",
		"replay gives final messages a new life: pending, with a full budget. What the destination rejected goes out under a new\n"+
			"idempotency key, since its receiver would give the old answer to the old one; all else under the key of before, which\n"+
			"a receiver that did the work drops. Where an earlier send may have taken effect and that is not safe, it is left out.")
	r.keyFlags(cmd)
	return cmd
}

func (p *program) retryNowCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpRetryNow}}
	return p.operationCommand(r, "retry-now [ID…]", "Make due at once what waits for its next try",
		"retry-now changes nothing but the time: the same life, the same budget. What the application delayed is left out unless\nit is named by its id.")
}

func (p *program) cancelCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpCancel}}
	return p.operationCommand(r, "cancel [ID…]", "End pending messages without sending them",
		"cancel makes pending messages failed, for the reason cancelled, and resolved. What is in flight is left out.")
}

func (p *program) resolveCommand() *cobra.Command {
	r := &request{Operation: relay.Operation{Op: relay.OpResolve}}
	return p.operationCommand(r, "resolve [ID…]", "Say that failed messages need nothing more",
		"resolve takes failed messages out of what waits for a person. It wants a --note.")
}

// operationCommand is a command for messages that ids or a filter name.
func (p *program) operationCommand(r *request, use, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long: long + "\n\nIt counts the messages first, and asks. A relay applies the operation; its id is printed.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			r.Order.IDs = ids
			return p.ask(cmd.Context(), *r)
		},
	}
	r.filterFlags(cmd.Flags())
	return cmd
}

// ask checks an operation, shows what it would do, and hands it to the relays.
func (p *program) ask(ctx context.Context, r request) error {
	text, err := r.Order.Text()
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if r.Order, err = relay.ParseOrder(r.Op, text, r.Note); err != nil {
		return usagef("%w", err)
	}
	l, db, err := p.connect()
	if err != nil {
		return err
	}
	defer db.Close()
	goOn, err := p.preview(ctx, db, &r, l.memory)
	if err != nil || !goOn {
		return err
	}
	r.Actor = actor()
	if r.correcting != nil {
		if err := p.writeCorrections(ctx, db, &r); err != nil {
			return err
		}
	}
	id, err := db.Ask(ctx, r.Operation)
	if err != nil {
		return filterError(err)
	}
	fmt.Fprintln(p.stdout, id)
	alive, err := p.tellNoRelay(ctx, db)
	switch {
	case err != nil:
		return err
	case r.wait || r.DryRun && alive:
		return p.follow(ctx, db, r, id)
	}
	fmt.Fprintf(p.stderr, "what comes of it: outboxd operations %s\n", id)
	return nil
}

// check refuses in the words of the command line what relay.ParseOrder would refuse in those of a filter.
func (r request) check() error {
	targets := 0
	for _, given := range []bool{r.Order.Destination != "", r.Order.RoutingKey != "", r.Order.Type != "", r.Order.Everything} {
		if given {
			targets++
		}
	}
	switch {
	case strings.TrimSpace(r.Note) == "" && r.Op == relay.OpResolve:
		return usagef("resolve wants --note: somebody will ask why it needs nothing more")
	case strings.TrimSpace(r.Note) == "" && r.Op == relay.OpCorrect:
		return usagef("correct wants --note: somebody will ask why the payload is another one than the application wrote")
	case strings.TrimSpace(r.Note) == "" && r.Order.Force:
		return usagef("--force wants --note: the work may be done twice, and somebody will ask who looked at the receiver")
	case r.Op.Steers() && targets != 1:
		return usagef("%s wants one of these: a destination, --routing-key, --type or --everything; see outboxd %s --help", r.Op, r.Op)
	case r.Op.Steers() && r.Order.SchemaVersion != 0 && r.Order.Type == "":
		return usagef("--schema-version goes with --type; see outboxd %s --help", r.Op)
	case r.Op == relay.OpPause && (r.Order.For > 0) == r.Order.Indefinitely, r.Order.For < 0:
		return usagef("pause wants --for, such as --for 30m, or --indefinitely; see outboxd pause --help")
	}
	return nil
}

// command is the name of the command that asks for an operation.
func command(op relay.Op) string { return strings.ReplaceAll(string(op), "_", "-") }

// title begins what is said of a request: a dry run is told from the real thing in every line.
func (r request) title() string {
	if r.DryRun {
		return "dry run: " + command(r.Op)
	}
	return command(r.Op)
}

// confirm asks the person at the terminal.
func (p *program) confirm() error {
	file, ok := p.stdin.(*os.File)
	if ok {
		info, err := file.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		return usagef("nobody is there to be asked: add --yes")
	}
	fmt.Fprint(p.stderr, "go on? [y/N] ")
	var answer string
	_, err := fmt.Fscanln(file, &answer)
	switch {
	case errors.Is(err, io.EOF):
		return usagef("nobody is there to be asked: add --yes")
	case !strings.HasPrefix(strings.ToLower(answer), "y"):
		return failf(exitNotAllowed, "not confirmed: nothing was asked for")
	}
	return nil
}

// tellNoRelay says that nobody is there to apply anything.
func (p *program) tellNoRelay(ctx context.Context, db operator) (alive bool, err error) {
	relays, err := db.Relays(ctx)
	if err != nil {
		return false, err
	}
	if alive = len(aliveOf(relays)) > 0; !alive {
		fmt.Fprintln(p.stderr, "no relay is alive: it is applied as soon as one runs")
	}
	return alive, nil
}

// actor is who asks, as the operating system knows them.
func actor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = filepath.Base(strings.ReplaceAll(u.Username, `\`, "/"))
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
