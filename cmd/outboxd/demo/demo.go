// Package demo tells in seven steps what outboxd is for, with a pretend shop, a receiver over real HTTP, and the relay as a
// child process that is really killed. Start reading at story.go: its steps are what is printed.
package demo

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/outboxd/outboxd/dialect"
)

// Options is all that a demo needs.
type Options struct {
	URL       string // of a server; empty: a file of SQLite in the demo's own folder
	Engine    string // of that URL, as dialect.EngineOf names it
	Auto      bool   // no Enter between the steps
	Keep      bool   // folder and schema stay
	Forgetful bool   // the receiver forgets its keys, so that the balance fails
	Colour    bool

	In  io.Reader
	Out io.Writer

	Program string   // the path of outboxd itself
	Command string   // how a person calls it, without what the environment would say against the demo's configuration
	Environ []string // of its processes, as os.Environ has it
	Open    func(url, schema string) (Database, error)
}

// Database is a DB of an engine, as the demo needs it.
type Database interface {
	Migrate(context.Context) (applied []string, err error)
	Get(ctx context.Context, id string) (dialect.Message, []dialect.Attempt, error)
	Pool() *sql.DB // for the statements of shop and receiver
	Close() error
}

// cleanUp is how long the end of a demo may take.
const cleanUp = 20 * time.Second

// Play plays the demo to its end. It returns nil only if the closing balance holds. When ctx ends, it ends too; in every
// case the relay has ended when it returns, and nothing is left behind unless Keep says so.
func Play(ctx context.Context, o Options) (err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	o.Out = output{to: o.Out, end: end}
	folder, err := os.MkdirTemp("", "outboxd-demo-")
	if err != nil {
		if path, ok := errors.AsType[*os.PathError](err); ok {
			err = path.Err
		}
		return fmt.Errorf("cannot make a temporary folder in %s: %w; set TMPDIR to one that can be written", os.TempDir(), err)
	}
	if !o.Keep {
		defer func() { err = errors.Join(err, cause(os.RemoveAll(folder))) }()
	}
	place := o.place(folder)
	db, err := o.Open(place.url, place.schema)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	tables := tables{pool: db.Pool(), engine: place.engine, schema: place.schema}
	if !o.Keep {
		defer func() { err = errors.Join(err, tables.drop()) }()
	}
	if err := tables.make(ctx); err != nil {
		return err
	}
	r, err := newReceiver(ctx, tables, o.Forgetful)
	if err != nil {
		return err
	}
	defer r.close()
	config, err := place.writeConfig(folder, r.url)
	if err != nil {
		return err
	}
	s := &story{
		page: page{out: o.Out, colour: o.Colour}, auto: o.Auto, in: bufio.NewReader(o.In),
		place: place, db: db, tables: tables, receiver: r, shop: shop{tables},
		relays: relays{program: o.Program, environ: o.Environ, config: config, log: filepath.Join(folder, "relay.log")},
	}
	defer s.relays.stop()
	if err := s.tell(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("the demo was stopped before its end")
		}
		return err
	}
	if o.Keep {
		s.sayWhatIsKept(o.Command, folder, config)
	}
	return nil
}

// place is where a demo is played.
type place struct {
	url    string
	engine string // as dialect.EngineOf names it
	schema string // of the demo's own; empty on SQLite, which has a file of its own
	words  string // for people, without the URL: it may hold a password
}

func (o Options) place(folder string) place {
	if o.URL == "" {
		file := filepath.Join(folder, "shop.db")
		return place{url: "sqlite://" + filepath.ToSlash(file), engine: dialect.SQLite, words: "SQLite, the file " + file}
	}
	schema := fmt.Sprintf("outboxd_demo_%08x", rand.Uint32())
	words := "PostgreSQL, the schema " + schema
	if o.Engine == dialect.MySQL {
		words = "MySQL or MariaDB, the database " + schema
	}
	return place{url: o.URL, engine: o.Engine, schema: schema, words: words + ", of the demo's own"}
}

// lease is short, so that nobody waits long for a killed relay's messages. The lock time-outs of MySQL and MariaDB are whole
// seconds, and a sixth of the lease.
func (p place) lease() time.Duration {
	if p.engine == dialect.MySQL {
		return 6 * time.Second
	}
	return 3 * time.Second
}

// writeConfig writes the configuration of the demo's relays, and the URL into a file of its own that only this user reads.
func (p place) writeConfig(folder, receiver string) (file string, err error) {
	secret := filepath.Join(folder, "database-url")
	if err := os.WriteFile(secret, []byte(p.url+"\n"), 0o600); err != nil {
		return "", cause(err)
	}
	schema := ""
	if p.schema != "" {
		schema = ", schema: " + p.schema
	}
	text := fmt.Sprintf(`# Written by outboxd demo.
database: {url_file: %q%s}
relay:
  lease: %s          # a killed relay's messages wait so long; 30s where nothing is said
  stop_timeout: 2s
http: {listen: "off"}
destinations:
  billing:
    webhook: {url: %q, dedupe: 24h}
    timeout: 1h        # the demo's receiver holds an answer back until you press Enter
routes:
  - {match: orders, to: billing, ordered: false}
`, secret, schema, p.lease(), receiver)
	file = filepath.Join(folder, "outboxd.yaml")
	return file, cause(os.WriteFile(file, []byte(text), 0o600))
}

// cause takes the name of the system call off an error of a file.
func cause(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}
