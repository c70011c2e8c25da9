package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What watches a relay, and the pages for who is woken by it.
const (
	rulesFile     = "../deploy/prometheus/outboxd.rules.yaml"
	dashboardFile = "../deploy/grafana/outboxd.json"
	runbook       = "../docs/runbook/"
	runbookSite   = "https://github.com/outboxd/outboxd/blob/main/docs/runbook/"
)

// alert is a rule of Prometheus, in its words. A field that is not here is refused.
type alert struct {
	Name        string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `yaml:"name"`
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions(readFile(t, rulesFile), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("%s has %d groups", rulesFile, len(file.Groups))
	}
	return file.Groups[0].Rules
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// promtool runs it, and skips where there is none, but for CI.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed; scripts/run-tests fetches it")
		}
		t.Skip("promtool is not installed, and checks what Prometheus reads; scripts/run-tests fetches it")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestAlertRules has Prometheus' own tool check the alerts and run their unit tests, of which each alert has one that fires.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	const tests = "../deploy/prometheus/outboxd_test.yaml"
	text := string(readFile(t, tests))
	for _, a := range alerts(t) {
		if !regexp.MustCompile(`alertname: ` + a.Name + `\n\s+exp_alerts:\n\s+- `).MatchString(text) {
			t.Errorf("no unit test has %s fire", a.Name)
		}
		if !slices.Contains([]string{"critical", "ticket", "warning"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Name, a.Labels["severity"])
		}
	}
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "test", "rules", tests)
}

// TestRunbook: each alert has its page, which its runbook_url names and the list of pages too; and no page is of no alert.
func TestRunbook(t *testing.T) {
	t.Parallel()
	var pages []string
	list := string(readFile(t, runbook+"README.md"))
	for _, a := range alerts(t) {
		file := a.Name + ".md"
		pages = append(pages, file)
		if url := a.Annotations["runbook_url"]; url != runbookSite+file {
			t.Errorf("%s: runbook_url %s, want %s", a.Name, url, runbookSite+file)
		}
		text, err := os.ReadFile(runbook + file)
		if err != nil {
			t.Errorf("%s has no page: %v", a.Name, err)
			continue
		}
		for _, part := range []string{
			"# " + a.Name + "\n", "\n**What it means.** ", "\n**Severity**: " + a.Labels["severity"], "\n## Look\n", "\n## Do\n", "\n## It ends\n",
		} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q", file, part)
			}
		}
		if !strings.Contains(list, fmt.Sprintf("| [%s](%s) | %s |", a.Name, file, a.Labels["severity"])) {
			t.Errorf("docs/runbook/README.md does not list %s as %s", a.Name, a.Labels["severity"])
		}
	}
	for _, file := range runbookPages(t) {
		if name := filepath.Base(file); name != "README.md" && !slices.Contains(pages, name) {
			t.Errorf("%s is the page of no alert", name)
		}
	}
}

func runbookPages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(runbook + "*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	return files
}

// TestRunbookCommands: each command that a page names exists, with its flags; each query is one of its database.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile("(?m)^outboxd .*$|`outboxd [^`]+`")
	databases := map[string]*database{}
	for _, e := range engines() {
		databases[e.name] = e.database(t)
	}
	seen := map[string]bool{}
	for _, file := range runbookPages(t) {
		text := string(readFile(t, file))
		for _, command := range commands.FindAllString(text, -1) {
			command = strings.Trim(command, "`")
			if seen[command] {
				continue
			}
			seen[command] = true
			args := shellWords(t, command)[1:]
			if stdout, stderr, code := outboxd(t, nil, append(args, "--help")...); code != 0 || !strings.Contains(stdout, "outboxd "+args[0]) ||
				strings.Contains(stdout, "outboxd "+args[0]+" [command]") {
				t.Errorf("%s: %s: exit %d: %s", filepath.Base(file), command, code, stderr)
			}
		}
		for _, b := range blocks(t, text) {
			if b.language != "sql" {
				continue
			}
			for statement := range strings.SplitSeq(strings.TrimSpace(b.text), ";\n") {
				explainEverywhere(t, databases, strings.TrimSuffix(statement, ";"))
			}
		}
	}
}

// explainEverywhere has each engine plan a statement, and run nothing; what is in the words of one engine only has that.
func explainEverywhere(t *testing.T, databases map[string]*database, statement string) {
	t.Helper()
	for name, db := range databases {
		switch {
		case strings.Contains(statement, "pg_") && name != "postgres", strings.Contains(statement, "INNODB") && name != "mysql" && name != "mariadb":
			continue
		}
		if _, err := db.ExecContext(t.Context(), "EXPLAIN "+statement); err != nil {
			t.Errorf("%s: %v, in: %s", name, err, statement)
		}
	}
}

// shellWords are the words of a command line, as a shell reads those that have no more to them than double quotes.
func shellWords(t *testing.T, line string) (words []string) {
	t.Helper()
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// dashboard is what a test wants to know of Grafana's file.
type dashboard struct {
	Inputs []struct {
		Name     string `json:"name"`
		PluginID string `json:"pluginId"`
	} `json:"__inputs"`
	Panels []struct {
		ID         int        `json:"id"`
		Type       string     `json:"type"`
		Title      string     `json:"title"`
		Datasource datasource `json:"datasource"`
		GridPos    struct{ H, W, X, Y int }
		Targets    []struct {
			Expr       string     `json:"expr"`
			Datasource datasource `json:"datasource"`
		} `json:"targets"`
	} `json:"panels"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, dashboardFile), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions are those of all panels, with values in place of Grafana's variables.
func (d dashboard) expressions() (list []string) {
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(target.Expr))
		}
	}
	return list
}

// TestDashboard: every panel asks the data source that is chosen at the import, lies where no other does, and asks what
// Prometheus understands.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	want := datasource{"prometheus", "${DS_PROMETHEUS}"}
	if len(d.Inputs) != 1 || "${"+d.Inputs[0].Name+"}" != want.UID || d.Inputs[0].PluginID != want.Type {
		t.Errorf("inputs: %+v", d.Inputs)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %s, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource != want || len(p.Targets) == 0 {
			t.Errorf("%s: data source %+v, %d targets", p.Title, p.Datasource, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.Datasource != want {
				t.Errorf("%s: data source %+v", p.Title, target.Datasource)
			}
		}
	}
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for i, expr := range d.expressions() {
		records = append(records, record{fmt.Sprintf("panel:%d", i), expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
