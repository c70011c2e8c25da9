package integration

import (
	"bufio"
	"debug/elf"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// deployed is the program as a file under deploy/ starts it.
type deployed struct {
	args, env []string // in env {url} stands for the database's
	config    string   // what is in the file that --config names
	secrets   []string // paths of files that it reads; one whose name has "database" holds the URL, the others a token
}

// startDeployed makes the files that are named, validates the configuration, starts the program on a database with tables
// as the documents say, asks what probes ask, and ends it. It only listens at another port.
func startDeployed(t *testing.T, d deployed) {
	t.Helper()
	db, dir := emptyDatabase(t), t.TempDir()
	moves := []string{"{url}", db.url}
	for _, secret := range d.secrets {
		file, text := filepath.Join(dir, path.Base(secret)), "token"
		if strings.Contains(secret, "database") {
			text = db.url + "\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		moves = append(moves, secret, file)
	}
	config := configFile(t, strings.NewReplacer(moves...).Replace(d.config))
	moves = append(moves, d.args[len(d.args)-1], config)
	env := []string{"OUTBOXD_LISTEN=127.0.0.1:0"}
	for _, setting := range d.env {
		env = append(env, strings.NewReplacer(moves...).Replace(setting))
	}
	for _, args := range [][]string{{"config", "validate", "--config", config}, {"migrate", "up", "--config", config}} {
		stdout, stderr, code := outboxd(t, env, args...)
		if code != 0 || strings.Contains(stdout+stderr, "warn") {
			t.Fatalf("outboxd %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
		}
	}
	args := slices.Clone(d.args)
	args[len(args)-1] = config
	p := start(t, env, args...)
	p.waitReady(t, http.StatusOK)
	if status, body := ask(t, p.address(t), "/livez"); status != http.StatusOK {
		t.Errorf("/livez answers %d, %s", status, body)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

// TestSystemd holds the unit against what the program can do, has systemd-analyze verify it where there is one, and starts
// the program as it says. No test has a running systemd.
func TestSystemd(t *testing.T) {
	t.Parallel()
	const file = "../deploy/systemd/outboxd-relay.service"
	unit := readUnit(t, file)
	command := strings.Fields(unit["Service.ExecStart"])
	if command[0] != "/usr/local/bin/outboxd" || unit["Service.Type"] != "exec" || unit["Service.DynamicUser"] != "yes" || unit["Service.KillMode"] != "mixed" {
		t.Errorf("%v", unit)
	}
	credential, source, _ := strings.Cut(unit["Service.LoadCredential"], ":")
	environment := unit["Service.Environment"]
	if !strings.HasSuffix(environment, "=%d/"+credential) || !path.IsAbs(source) {
		t.Errorf("LoadCredential=%s:%s and Environment=%s", credential, source, environment)
	}
	t.Run("verify", func(t *testing.T) {
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			t.Skip("systemd-analyze is not installed, and reads the unit")
		}
		verifyUnit(t, file, command[0])
	})
	startDeployed(t, deployed{
		args: command[1:], env: []string{environment}, secrets: []string{"%d/" + credential},
		config: "destinations: {screen: {stdout: {}}}\nroutes: [{match: \"*\", to: screen}]\n",
	})
}

// readUnit are the settings of a unit file, by section and name. Each may be there once.
func readUnit(t *testing.T, file string) map[string]string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	settings, section := map[string]string{}, ""
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := lines.Text()
		name, value, found := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]") + "."
		case !found || settings[section+name] != "":
			t.Errorf("%s: no setting, or one that is there twice: %s", file, line)
		default:
			settings[section+name] = value
		}
	}
	return settings
}

// verifyUnit has a copy of the unit checked, in which the command is the program that was built.
func verifyUnit(t *testing.T, file, command string) {
	t.Helper()
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "ExecStart="+command, "ExecStart="+built)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", unit}, {"security", "--offline=true", "--threshold=20", unit}} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// TestDockerfile builds the binary with the image's own command: it is static, so that an image without a libc runs it. And
// the image is one of a user by number, without a shell. No test builds the image.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	build, image, found := strings.Cut(string(text), "\nFROM gcr.io/distroless/static-debian12:nonroot\n")
	if !found {
		t.Fatal("the image is made of another one")
	}
	for _, line := range []string{
		"COPY --from=build /outboxd /usr/local/bin/outboxd", "USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/outboxd"]`, `CMD ["run"]`,
	} {
		if !strings.Contains("\n"+image, "\n"+line+"\n") {
			t.Errorf("the image has no %s", line)
		}
	}
	if strings.Contains("\n"+image, "\nRUN ") {
		t.Error("the image has no shell, and a RUN")
	}
	_, rest, found := strings.Cut(build, "\nRUN CGO_ENABLED=0 ")
	command, _, _ := strings.Cut(rest, "\n")
	_, command, compiles := strings.Cut(command, "go build ")
	if !found || !compiles {
		t.Fatal("nothing is built without cgo")
	}
	binary := filepath.Join(t.TempDir(), "outboxd")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build"}, strings.Fields(strings.Replace(command, "/outboxd", binary, 1))...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	program, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary wants a dynamic linker")
		}
	}
}
