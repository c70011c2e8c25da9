package integration

import (
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

// What the compose files use of Compose's specification, in its words. A field that is not here is refused.
type (
	composeFile struct {
		Services map[string]composeService `yaml:"services"`
		Volumes  map[string]any            `yaml:"volumes"`
		Outboxd  map[string]any            `yaml:"x-outboxd"`
		Postgres map[string]any            `yaml:"x-postgres"`
		Bouncer  map[string]any            `yaml:"x-pgbouncer"`
	}
	composeService struct {
		Image           string            `yaml:"image"`
		Build           any               `yaml:"build"` // a folder, or more
		Command         []string          `yaml:"command"`
		Environment     map[string]string `yaml:"environment"`
		Ports           []string          `yaml:"ports"`
		Profiles        []string          `yaml:"profiles"`
		Volumes         []string          `yaml:"volumes"`
		Init            bool              `yaml:"init"`
		ReadOnly        bool              `yaml:"read_only"`
		CapDrop         []string          `yaml:"cap_drop"`
		SecurityOpt     []string          `yaml:"security_opt"`
		StopGracePeriod string            `yaml:"stop_grace_period"`
		Healthcheck     *struct {
			Test     []string `yaml:"test"`
			Interval string   `yaml:"interval"`
			Timeout  string   `yaml:"timeout"`
			Retries  int      `yaml:"retries"`
		} `yaml:"healthcheck"`
		DependsOn map[string]struct {
			Condition string `yaml:"condition"`
			Required  *bool  `yaml:"required"`
		} `yaml:"depends_on"`
	}
)

func readCompose(t *testing.T, file string) (c composeFile) {
	t.Helper()
	text, err := os.ReadFile("../" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// TestComposeFiles checks the form of the compose files alone: names, references and what scripts/servers relies on. Only
// a machine with a container engine can tell whether they run.
func TestComposeFiles(t *testing.T) {
	t.Parallel()
	port := regexp.MustCompile(`^127\.0\.0\.1:(\d+|\$\{OUTBOXD_TEST_\w+_PORT:\?\}):(\d+|\$\{OUTBOXD_TEST_\w+_PORT:\?\})$`)
	for file, want := range map[string]string{
		"docker-compose.yml":      "kafka mariadb mysql outboxd postgres provider shop topics",
		"docker-compose.test.yml": "kafka mariadb mysql pgbouncer pgbouncer18 postgres postgres18",
	} {
		c := readCompose(t, file)
		for name := range strings.FieldsSeq(want) {
			s, ok := c.Services[name]
			if !ok {
				t.Errorf("%s has no service %s", file, name)
				continue
			}
			if s.Image == "" && s.Build == nil {
				t.Errorf("%s: %s needs an image or a build", file, name)
			}
			if len(s.Ports) > 0 && s.Healthcheck == nil {
				t.Errorf("%s: %s has a port and no healthcheck, so that nothing waits for it", file, name)
			}
			for _, p := range s.Ports {
				if !port.MatchString(p) {
					t.Errorf("%s: %s is open beyond this machine, or misspelt: %s", file, name, p)
				}
			}
			for other, how := range s.DependsOn {
				needed, there := c.Services[other]
				optional := how.Required != nil && !*how.Required
				switch {
				case !there:
					t.Errorf("%s: %s depends on %s, which is not there", file, name, other)
				case how.Condition == "service_healthy" && needed.Healthcheck == nil:
					t.Errorf("%s: %s waits for the health of %s, which has no healthcheck", file, name, other)
				case !optional && !alwaysBeside(s.Profiles, needed.Profiles):
					t.Errorf("%s: %s needs %s, which is not in its profiles", file, name, other)
				}
			}
			for _, v := range s.Volumes {
				source, _, _ := strings.Cut(v, ":")
				if _, named := c.Volumes[source]; named || strings.HasPrefix(source, "$") {
					continue
				}
				if _, err := os.Stat(filepath.Join("..", source)); err != nil {
					t.Errorf("%s: %s mounts what is not there: %v", file, name, err)
				}
			}
			if folder, ok := s.Build.(string); ok {
				if _, err := os.Stat(filepath.Join("..", folder, "Dockerfile")); err != nil {
					t.Errorf("%s: %s is built of what is not there: %v", file, name, err)
				}
			}
		}
		if len(c.Services) != len(strings.Fields(want)) {
			t.Errorf("%s: %d services, want %s", file, len(c.Services), want)
		}
	}
}

// alwaysBeside says whether a service is there whenever one with these profiles is.
func alwaysBeside(profiles, needed []string) bool {
	if len(needed) == 0 {
		return true
	}
	return len(profiles) > 0 && !slices.ContainsFunc(profiles, func(p string) bool { return !slices.Contains(needed, p) })
}

// TestComposeRelay starts the relay of docker-compose.yml as that says, on a database of the test's, and its provider.
func TestComposeRelay(t *testing.T) {
	t.Parallel()
	c := readCompose(t, "docker-compose.yml")
	relay, provider := c.Services["outboxd"], c.Services["provider"]
	const config = "deploy/compose/outboxd.yaml"
	if mount := "./" + config + ":" + relay.Command[len(relay.Command)-1] + ":ro"; !slices.Contains(relay.Volumes, mount) {
		t.Errorf("%q does not mount %s", relay.Volumes, mount)
	}
	if !relay.Init {
		t.Error("no init process reaps what programs leave behind")
	}
	text, err := os.ReadFile("../" + config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "provider"} {
		if _, there := c.Services[name]; !there || !strings.Contains(string(text), "//"+name+":") {
			t.Errorf("the relay does not send to %s", name)
		}
	}
	if c.Services["shop"].Environment["DATABASE_URL"] != relay.Environment["OUTBOXD_DATABASE_URL"] {
		t.Error("the relay has another database than the shop")
	}
	var env []string
	for name, value := range relay.Environment {
		if name == "OUTBOXD_DATABASE_URL" {
			value = "{url}"
		}
		env = append(env, name+"="+value)
	}
	t.Run("relay", func(t *testing.T) {
		t.Parallel()
		startDeployed(t, deployed{args: relay.Command, env: env, config: string(text)})
	})
	t.Run("provider", func(t *testing.T) {
		t.Parallel()
		args := slices.Clone(provider.Command)
		listen := slices.Index(args, "--listen") + 1
		if listen == 0 || !strings.Contains(string(text), "//provider"+strings.TrimPrefix(args[listen], "0.0.0.0")+"/") {
			t.Fatalf("%q does not listen where the relay sends", args)
		}
		args[listen] = "127.0.0.1:0"
		p := start(t, nil, args...)
		eventually(t, patience, func() error {
			if said := p.stdout.String() + p.stderr.String(); !strings.Contains(said, "listening on") {
				return fmt.Errorf("it says %q", said)
			}
			return nil
		})
		if code := p.terminate(t); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	})
}

// TestComposeConfig has Compose itself read the file, where there is one. It needs no engine for that.
func TestComposeConfig(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
		t.Skip("docker compose is not installed")
	}
	for _, profiles := range [][]string{nil, {"topics"}, {"shop"}, {"shop", "mysql"}, {"shop", "mariadb"}, {"*"}} {
		args := []string{"compose", "--file", "../docker-compose.yml"}
		for _, p := range profiles {
			args = append(args, "--profile", p)
		}
		if out, err := exec.CommandContext(t.Context(), "docker", append(args, "config", "--quiet")...).CombinedOutput(); err != nil {
			t.Errorf("with the profiles %q: %v\n%s", profiles, err, out)
		}
	}
}
