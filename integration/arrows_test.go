package integration

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/outboxd/outboxd/"

// arrow says what a package may import: ours are folders of this module, others are third parties. The standard library
// is free to all. Every package has its line, so that all that is reachable from one is what these lines allow; the
// longest folder that fits counts.
type arrow struct {
	folder string
	ours   []string
	others []string
}

// The linter has the same arrows (.golangci.yaml, depguard), for the editor; here they hold without it.
var arrows = []arrow{
	{folder: "outbox"}, // applications import it, and get nothing else with it
	{folder: "sql"},
	{folder: "relay", ours: []string{"outbox"}, others: []string{"golang.org/x/time/rate"}},
	{folder: "relay/relaytest", ours: []string{"outbox", "relay"}},
	{
		folder: "relay/sink/kafka", ours: []string{"outbox", "relay"},
		others: []string{
			"github.com/IBM/sarama", "github.com/xdg-go/scram", "github.com/cenkalti/backoff",
			"github.com/eapache/go-resiliency", "github.com/rcrowley/go-metrics", // types of sarama's own surface
		},
	},
	{folder: "relay/sink/program", ours: []string{"outbox", "relay"}},
	{folder: "relay/sink/stdout", ours: []string{"outbox", "relay"}},
	{folder: "relay/sink/webhook", ours: []string{"outbox", "relay"}, others: []string{"golang.org/x/oauth2"}},
	{
		folder: "dialect", ours: []string{"relay", "sql"}, // an engine brings its own driver
		others: []string{"github.com/jmoiron/sqlx"},
	},
	{folder: "dialect/dialecttest", ours: []string{"dialect", "outbox", "relay"}, others: []string{"github.com/jmoiron/sqlx"}},
	{
		folder: "dialect/postgres", ours: []string{"dialect", "outbox", "relay", "sql"},
		others: []string{"github.com/jmoiron/sqlx", "github.com/lib/pq"},
	},
	{
		folder: "dialect/mysql", ours: []string{"dialect", "outbox", "relay", "sql"},
		others: []string{"github.com/jmoiron/sqlx", "github.com/go-sql-driver/mysql"},
	},
	{
		folder: "dialect/sqlite", ours: []string{"dialect", "outbox", "relay", "sql"},
		others: []string{"github.com/jmoiron/sqlx", "modernc.org/sqlite"},
	},
	{
		folder: "cmd/outboxd", ours: []string{"outbox", "relay", "relay/sink/", "dialect", "dialect/", "sql", "cmd/outboxd/demo", "cmd/outboxd/receive", "cmd/outboxd/tracing"},
		others: []string{
			"github.com/spf13/cobra", "github.com/goccy/go-yaml", "github.com/prometheus/client_golang",
			"github.com/spf13/pflag", "github.com/cenkalti/backoff", // the waits of a start without its database
			"golang.org/x/time/rate",                                    // of a drill
			"github.com/itchyny/gojq", "github.com/schollz/progressbar", // of corrections and waits
		},
	},
	{folder: "cmd/outboxd/demo", ours: []string{"outbox", "dialect", "dialect/"}},
	{folder: "cmd/outboxd/tracing", ours: []string{"relay"}, others: []string{"go.opentelemetry.io/otel"}},
	{folder: "cmd/outboxd/receive"}, // what it shows, any receiver can do
	{
		folder: "integration", ours: []string{"outbox", "relay", "relay/relaytest", "relay/sink/", "dialect", "dialect/", "sql"},
		others: []string{"github.com/lib/pq", "github.com/jmoiron/sqlx", "github.com/IBM/sarama", "github.com/twmb/franz-go"},
	},
	{folder: "scripts/testreport"},
}

// forTests are for the tests of all packages, and for nothing else.
var forTests = []string{module + "relay/relaytest", module + "dialect/dialecttest"}

// imports is what `go list` says of a package.
type imports struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestArrows(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		a, ok := arrowOf(p.ImportPath)
		if !ok {
			t.Errorf("%s has no line in arrows: say there what it may import", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if !a.allows(imported) || slices.Contains(forTests, imported) {
				t.Errorf("%s imports %s: no arrow leads there", p.ImportPath, imported)
			}
		}
		// A test may also use what helps tests, and third parties as it likes; it follows the arrows all the same.
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			own := imported+"/" == module || strings.HasPrefix(imported, module)
			if own && imported != p.ImportPath && !slices.Contains(forTests, imported) && !a.allows(imported) {
				t.Errorf("a test of %s imports %s: no arrow leads there", p.ImportPath, imported)
			}
		}
	}
}

func listPackages(t *testing.T) []imports {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []imports
	for list := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p imports
		if err := list.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
}

func arrowOf(path string) (best arrow, ok bool) {
	for _, a := range arrows {
		if within(path, module+a.folder) && len(a.folder) > len(best.folder) {
			best, ok = a, true
		}
	}
	// A sink of a new kind needs a line of its own: it is no part of the core.
	if best.folder == "relay" && strings.HasPrefix(path, module+"relay/sink/") {
		return arrow{}, false
	}
	return best, ok
}

func (a arrow) allows(imported string) bool {
	if folder, ours := strings.CutPrefix(imported, module); ours {
		return slices.ContainsFunc(a.ours, func(may string) bool {
			return folder == may || strings.HasSuffix(may, "/") && strings.HasPrefix(folder, may)
		})
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(a.others, func(may string) bool { return within(imported, may) })
}

// within tells whether a path is a folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
