package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestComposeFiles checks the form of the compose files alone: names, references and what scripts/servers relies on. Only
// a machine with a container engine can tell whether they run.
func TestComposeFiles(t *testing.T) {
	t.Parallel()
	type service struct {
		Image       string         `yaml:"image"`
		Build       map[string]any `yaml:"build"`
		Command     []string       `yaml:"command"`
		Environment map[string]any `yaml:"environment"`
		Ports       []string       `yaml:"ports"`
		Profiles    []string       `yaml:"profiles"`
		Volumes     []string       `yaml:"volumes"`
		Healthcheck map[string]any `yaml:"healthcheck"`
		DependsOn   map[string]any `yaml:"depends_on"`
	}
	type compose struct {
		Services map[string]service `yaml:"services"`
		Volumes  map[string]any     `yaml:"volumes"`
		Postgres map[string]any     `yaml:"x-postgres"`
		Bouncer  map[string]any     `yaml:"x-pgbouncer"`
	}
	port := regexp.MustCompile(`^127\.0\.0\.1:(\d+|\$\{OUTBOXD_TEST_\w+_PORT:\?\}):(\d+|\$\{OUTBOXD_TEST_\w+_PORT:\?\})$`)

	for file, want := range map[string]string{
		"docker-compose.yml":      "kafka postgres topics",
		"docker-compose.test.yml": "kafka mariadb mysql pgbouncer pgbouncer18 postgres postgres18",
	} {
		text, err := os.ReadFile("../" + file)
		if err != nil {
			t.Fatal(err)
		}
		var c compose
		if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for name := range strings.FieldsSeq(want) {
			s, ok := c.Services[name]
			if !ok {
				t.Errorf("%s has no service %s", file, name)
				continue
			}
			if (s.Image == "") == (s.Build == nil) {
				t.Errorf("%s: %s needs an image or a build, and not both", file, name)
			}
			if len(s.Ports) > 0 && s.Healthcheck == nil {
				t.Errorf("%s: %s has a port and no healthcheck, so that nothing waits for it", file, name)
			}
			for _, p := range s.Ports {
				if !port.MatchString(p) {
					t.Errorf("%s: %s is open beyond this machine, or misspelt: %s", file, name, p)
				}
			}
			for other := range s.DependsOn {
				if _, ok := c.Services[other]; !ok {
					t.Errorf("%s: %s depends on %s, which is not there", file, name, other)
				}
			}
		}
		if len(c.Services) != len(strings.Fields(want)) {
			t.Errorf("%s: %d services, want %s", file, len(c.Services), want)
		}
	}
}
