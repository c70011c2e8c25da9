package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// hostile are passwords that break naive handling of YAML, URLs, shells and formats.
func hostile() []string {
	return []string{
		"hunter2", `pa"ss'wd2`, "p@ss:w/rd?2#x", "%s%d%!v(2)", "${HOME}x2$$", "pass word2 ", "{a: b2}", "|block2", "&anchor2",
		"päß-wörd2", "line1\nline2x", `back\slash2\n`,
	}
}

func TestSecretShowsNothing(t *testing.T) {
	t.Parallel()
	for _, password := range hostile() {
		s := struct {
			Password Secret `yaml:"password" json:"password"`
		}{Secret{password}}
		inJSON, _ := json.Marshal(s)
		inYAML, _ := yaml.Marshal(s)
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "s", s.Password, "group", s)
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "s", s.Password, "group", s)
		all := string(inJSON) + string(inYAML) + logged.String()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
			all += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, s.Password) + fmt.Sprintf(verb, &s.Password)
		}
		if strings.Contains(all, password) || strings.Contains(all, fmt.Sprintf("%x", password)) {
			t.Errorf("%q is in %s", password, all)
		}
		if !strings.Contains(string(inYAML), masked) || s.Password.Reveal() != password {
			t.Errorf("%q: %s", password, inYAML)
		}
	}
}

// TestNoPasswordInAnyOutput gives each password in each place where one can stand, rightly and wrongly, and looks for it
// in all that the commands print.
func TestNoPasswordInAnyOutput(t *testing.T) {
	t.Parallel()
	for _, password := range hostile() {
		dir := t.TempDir()
		secret := write(t, dir, "secret", password)
		quoted, _ := json.Marshal(password) // JSON is YAML
		url, _ := json.Marshal("postgres://u:" + password + "@127.0.0.1:1/d")
		kafka := "destinations: {k: {kafka: {brokers: ['127.0.0.1:1'], sasl: {mechanism: SCRAM-SHA-512, username: u, "
		route := "}}}}\nroutes: [{match: '*', to: k}]\n"
		hook := "destinations: {k: {webhook: {url: 'http://127.0.0.1:1', dedupe: 24h, "
		hooked := "}}}\nroutes: [{match: '*', to: k, ordered: false}]\n"
		for name, text := range map[string]string{
			"url":             "database: {url: " + string(url) + "}\n" + kafka + "password: x" + route,
			"bare url":        "database: {url: " + string(quoted) + "}\n" + kafka + "password: x" + route,
			"url_file":        "database: {url_file: " + secret + "}\n" + kafka + "password: x" + route,
			"password":        "database: {url: 'postgres://127.0.0.1:1/d'}\n" + kafka + "password: " + string(quoted) + route,
			"raw":             "database:\n  url: " + password + "\n  schema: x\n",
			"raw in braces":   "database: {url: " + password + "}\n",
			"wrong key":       "database: {urll: " + string(quoted) + "}\n",
			"wrong place":     "relay: {lease: " + string(quoted) + "}\n",
			"as schema's key": "database: {" + password + "}\n",
			"as broker":       "destinations: {k: {kafka: {brokers: [" + string(quoted) + "]}}}\n",
			"bearer":          hook + "bearer: " + string(quoted) + hooked,
			"bearer_file":     hook + "bearer_file: " + secret + hooked,
			"basic":           hook + "basic: {username: u, password: " + string(quoted) + "}" + hooked,
			"client_secret":   hook + "oauth2: {token_url: 'http://127.0.0.1:1', client_id: c, client_secret: " + string(quoted) + "}" + hooked,
			"signing secret":  hook + "secrets: [" + string(quoted) + "]" + hooked,
			"header":          hook + "headers: {X-A: " + string(quoted) + "}" + hooked,
			"as format":       hook + "format: " + string(quoted) + hooked,
			"as outcome":      hook + "outcomes: {'404': " + string(quoted) + "}" + hooked,
			"as rate":         "destinations: {k: {stdout: , rate: " + string(quoted) + "}}\n",
			"as token_url":    hook + "oauth2: {token_url: " + string(quoted) + ", client_id: c, client_secret: x}" + hooked,
			"as result":       hook + "result: " + string(quoted) + hooked,
			"as mechanism":    "destinations: {k: {kafka: {brokers: ['k:1'], sasl: {mechanism: " + string(quoted) + "}}}}\n",
		} {
			file := write(t, dir, "c.yaml", text)
			for _, args := range [][]string{
				{"config", "validate"},
				{"config", "show"},
				{"config", "show", "--resolved"},
				{"migrate", "status"},
				{"run", "--once"},
				{"list"},
				{"status"},
			} {
				_, stdout, stderr := cli(t, environment("OUTBOXD_LISTEN=off"), append(args, "-c", file)...)
				if leaks(stdout+stderr, password) {
					t.Errorf("%s, %q, %v: %s%s", name, password, args, stdout, stderr)
				}
			}
		}
	}
}

// leaks tells whether the text shows the password or a good part of it.
func leaks(text, password string) bool {
	for _, part := range strings.FieldsFunc(password, func(r rune) bool { return strings.ContainsRune("\n:/@#? {}|&", r) }) {
		if len(part) >= 5 && strings.Contains(text, part) {
			return true
		}
	}
	return strings.Contains(text, password)
}

func TestSecretSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := environment("PASSWORD=from env")
	for name, c := range map[string]struct {
		source secretSource
		want   string
		err    string
	}{
		"value":        {source: secretSource{value: Secret{"v"}}, want: "v"},
		"file":         {source: secretSource{file: write(t, dir, "f", "from file\r\n")}, want: "from file"},
		"environment":  {source: secretSource{env: "PASSWORD"}, want: "from env"},
		"no file":      {source: secretSource{file: filepath.Join(dir, "none")}, err: "cannot read " + filepath.Join(dir, "none") + ": no such file or directory"},
		"empty file":   {source: secretSource{file: write(t, dir, "e", "\n")}, err: "the file " + filepath.Join(dir, "e") + " is empty or not there"},
		"no variable":  {source: secretSource{env: "NONE"}, err: "the environment variable NONE is empty or not there"},
		"is directory": {source: secretSource{file: dir}, err: "cannot read " + dir + ": is a directory"},
	} {
		got, err := c.source.read(env)
		if got.Reveal() != c.want || errorText(err) != c.err {
			t.Errorf("%s: %q, %v", name, got.Reveal(), err)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
