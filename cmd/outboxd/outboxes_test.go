package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// several runs one process of several outboxes, each with a file of its own, and returns where it listens.
func several(t *testing.T, files map[string]string) (address string, stderr *safeBuffer, h *hangups) {
	t.Helper()
	address, stderr, h = freeAddress(t), &safeBuffer{}, newHangups()
	folder := t.TempDir()
	args := []string{"run"}
	for name, text := range files {
		file := filepath.Join(folder, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-c", file)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{env: environment("OUTBOXD_LISTEN=" + address), stdin: strings.NewReader(""), stdout: &safeBuffer{}, stderr: stderr, hangups: h}
	code := make(chan int, 1)
	go func() { code <- p.run(ctx, args) }()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != exitOK {
			t.Errorf("exit %d: %s", c, stderr)
		}
	})
	return address, stderr, h
}

// file is a configuration of an outbox on the server.
func (s *server) file() string {
	return fmt.Sprintf("database: {url: %q, schema: %s}\nrelay: {lease: 2s}\ndestinations: {out: {stdout: {}}}\nroutes: [{match: orders, to: out}]\n", s.url, s.schema)
}

// TestSeveralOutboxes holds that one process works on two schemas, whatever becomes of a third outbox whose database is away
// and a fourth whose tables do not admit it; that each has its series and its name in the log, and that health checks name
// those that do not work.
func TestSeveralOutboxes(t *testing.T) {
	t.Parallel()
	shop, crm, newer := migrated(t), migrated(t), migrated(t)
	newer.exec("INSERT INTO " + newer.schema + ".outbox_version (version, admits) VALUES (99, 99)")
	away := "database: {url: 'postgres://127.0.0.1:1/d'}\ndestinations: {out: {stdout: {}}}\nroutes: [{match: orders, to: out}]\n"
	address, stderr, h := several(t, map[string]string{"shop": shop.file(), "crm": crm.file(), "newer": newer.file(), "away": away})
	shop.insert(3, "orders", "order_paid")
	crm.insert(5, "orders", "order_paid")
	eventually(t, "both are sent", func() bool { return shop.count("state = 'done'") == 3 && crm.count("state = 'done'") == 5 })

	var body string
	eventually(t, "those that do not work are named", func() bool {
		var code int
		code, body = ask(t, "http://"+address+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "away: check the schema: the database at 127.0.0.1:1 does not answer") &&
			strings.Contains(body, "newer: the tables in schema")
	})
	if strings.Contains(body, "shop") || strings.Contains(body, "crm") {
		t.Errorf("readyz: %s", body)
	}
	if code, body := ask(t, "http://"+address+"/livez"); code != http.StatusOK {
		t.Errorf("livez: %s", body)
	}
	for _, want := range []string{
		`outboxd_sends_total{destination="out",outbox="shop",outcome="done",type="other"} 3`,
		`outboxd_sends_total{destination="out",outbox="crm",outcome="done",type="other"} 5`,
		`outboxd_db_up{outbox="shop"} 1`, `outboxd_db_up{outbox="away"} 0`,
	} {
		eventually(t, want, func() bool { _, body := ask(t, "http://"+address+"/metrics"); return strings.Contains(body, want) })
	}
	if _, body := ask(t, "http://"+address+"/metrics"); strings.Count(body, "\noutboxd_build_info{") != 1 || strings.Count(body, "\ngo_goroutines ") != 1 {
		t.Error("what is of the process has to be there once")
	}
	h.tell()
	for _, name := range []string{"shop", "crm", "away", "newer"} {
		eventually(t, name+" reloads", func() bool {
			for line := range strings.SplitSeq(stderr.String(), "\n") {
				if strings.Contains(line, "configuration reloaded") && strings.Contains(line, `"outbox":"`+name+`"`) {
					return true
				}
			}
			return false
		})
	}
}

// TestOutboxTriedAgain holds that one of several outboxes that was refused works once its tables admit it.
func TestOutboxTriedAgain(t *testing.T) {
	t.Parallel()
	one, other := migrated(t), migrated(t)
	one.exec("INSERT INTO " + one.schema + ".outbox_version (version, admits) VALUES (99, 99)")
	_, stderr, _ := several(t, map[string]string{"one": one.file(), "other": other.file()})
	eventually(t, "refused", func() bool { return strings.Contains(stderr.String(), "this outbox does not work") })
	one.exec("DELETE FROM " + one.schema + ".outbox_version WHERE version = 99")
	one.insert(1, "orders", "order_paid")
	eventually(t, "sent", func() bool { return one.count("state = 'done'") == 1 })
}

// TestOutboxesApart holds what is refused at the start, with words that name the file or the variable.
func TestOutboxesApart(t *testing.T) {
	t.Parallel()
	const good = "database: {url: 'postgres://127.0.0.1:1/%s'}\ndestinations: {out: {stdout: {}}}\nroutes: [{match: orders, to: out}]\n"
	for name, c := range map[string]struct {
		env        string
		files      map[string]string
		command    string
		code       int
		want, also string
	}{
		"one name":           {files: map[string]string{"a/shop.yaml": fmt.Sprintf(good, "a"), "b/shop.yaml": fmt.Sprintf(good, "b")}, code: exitConfiguration, want: "have one name, shop"},
		"one table":          {files: map[string]string{"a.yaml": fmt.Sprintf(good, "a"), "b.yaml": fmt.Sprintf(good, "a")}, code: exitConfiguration, want: "name the same database and schema"},
		"another listener":   {files: map[string]string{"a.yaml": fmt.Sprintf(good, "a"), "b.yaml": "http: {listen: ':1'}\n" + fmt.Sprintf(good, "b")}, code: exitConfiguration, want: "b.yaml: http.listen"},
		"mistakes of both":   {files: map[string]string{"a.yaml": "rutes: 1\n", "b.yaml": "dtabase: 1\n"}, code: exitConfiguration, want: "unknown key rutes", also: "unknown key dtabase"},
		"a variable for all": {env: envDatabase + "=postgres://127.0.0.1:1/d", files: map[string]string{"a.yaml": fmt.Sprintf(good, "a"), "b.yaml": fmt.Sprintf(good, "b")}, code: exitConfiguration, want: envDatabase + " would count for every file"},
		"another command":    {files: map[string]string{"a.yaml": fmt.Sprintf(good, "a"), "b.yaml": fmt.Sprintf(good, "b")}, command: "status", code: exitUsage, want: "only run takes several"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, args := t.TempDir(), []string{"run"}
			if c.command != "" {
				args = []string{c.command}
			}
			for _, name := range []string{"a.yaml", "b.yaml", "a/shop.yaml", "b/shop.yaml"} {
				text, there := c.files[name]
				if !there {
					continue
				}
				file := filepath.Join(folder, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "-c", file)
			}
			code, _, stderr := cli(t, environment(c.env), args...)
			if code != c.code || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, c.also) {
				t.Errorf("exit %d: %s", code, stderr)
			}
		})
	}
}
