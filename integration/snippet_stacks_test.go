package integration

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// snippetStack is how a snippet is run. scripts/languages installs what it needs.
type snippetStack struct {
	probe      []string                                                                  // a command that succeeds where all that it needs is installed
	program    []string                                                                  // in samples/snippets; it calls the snippet, whose file is its last argument
	script     func(t *testing.T, s *snippetShop, file string, o snippetOrder) *exec.Cmd // in place of a program: a client that runs the snippet
	oneCharset string                                                                    // the dialect with which its connections have to be in UTF-8, as it says itself
}

func snippetStacks(t *testing.T) map[string]snippetStack {
	t.Helper()
	php, python, ruby := debian("php"), debian("python3"), debian("ruby")
	jdbc := jars(t, "postgresql.jar", "mariadb-java-client.jar")
	spring := jdbc + ":" + jars(t, "spring*-jdbc.jar", "spring*-core.jar", "spring*-beans.jar", "spring*-t*x*.jar", "spring*-jcl.jar", "commons-logging.jar")
	return map[string]snippetStack{
		"php": {
			probe:   []string{php, "-r", `foreach (["pgsql", "mysql"] as $driver) in_array($driver, PDO::getAvailableDrivers()) || exit(1);`},
			program: []string{php, "samples/snippets/php.php"},
		},
		"php-laravel": {
			probe:      []string{php, "-r", `require "Illuminate/Database/autoload.php";`},
			program:    []string{php, "samples/snippets/php-laravel.php"},
			oneCharset: "postgres",
		},
		"java": {
			probe:   []string{"sh", "samples/snippets/java.sh", "--probe", jdbc},
			program: []string{"sh", "samples/snippets/java.sh", "Java", jdbc},
		},
		"java-spring": {
			probe:   []string{"sh", "samples/snippets/java.sh", "--probe", spring},
			program: []string{"sh", "samples/snippets/java.sh", "JavaSpring", spring},
		},
		"python": {
			probe:   []string{python, "-c", "import psycopg2, pymysql"},
			program: []string{python, "samples/snippets/python.py"},
		},
		"python-django": {
			probe:   []string{python, "-c", "import psycopg2, pymysql, django"},
			program: []string{python, "samples/snippets/python-django.py"},
		},
		"python-sqlalchemy": {
			probe:   []string{python, "-c", "import psycopg2, pymysql, sqlalchemy"},
			program: []string{python, "samples/snippets/python-sqlalchemy.py"},
		},
		"node": {
			probe:   []string{"node", "-e", "require('pg'); require('mysql2')"},
			program: []string{"node", "samples/snippets/node.js"},
		},
		"ruby": {
			probe:   []string{ruby, "-e", "require 'pg'; require 'mysql2'"},
			program: []string{ruby, "samples/snippets/ruby.rb"},
		},
		"ruby-rails": {
			probe:      []string{ruby, "-e", "require 'pg'; require 'mysql2'; require 'active_record'"},
			program:    []string{ruby, "samples/snippets/ruby-rails.rb"},
			oneCharset: "postgres",
		},
		"go":    {probe: []string{"go", "version"}, program: []string{"sh", "samples/snippets/go.sh"}},
		"psql":  {probe: []string{"psql", "--version"}, script: psqlScript},
		"mysql": {probe: []string{"mysql", "--version"}, script: mysqlScript},
	}
}

// jars is a class path of Debian's libraries; a pattern that matches none is left out.
func jars(t *testing.T, patterns ...string) string {
	t.Helper()
	var found []string
	for _, pattern := range patterns {
		files, err := filepath.Glob("/usr/share/java/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	return strings.Join(found, ":")
}

// debian is the program that Debian installs, where there is one: its libraries are for that, and not for another on the PATH.
func debian(name string) string {
	if path, err := exec.LookPath("/usr/bin/" + name); err == nil {
		return path
	}
	return name
}

// libraries tells programs where scripts/languages put what it did not install.
func libraries() []string {
	return []string{"NODE_PATH=" + os.Getenv("OUTBOXD_TEST_NODE_PATH")}
}

// need skips the test where the stack is not installed, or fails where CI=true says that it should be.
func (k snippetStack) need(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), k.probe[0], k.probe[1:]...)
	cmd.Env = environment(libraries())
	err := cmd.Run()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s: %v: scripts/languages installs what it needs, CI=false skips instead", strings.Join(k.probe, " "), err)
	default:
		t.Skipf("%s: %v; scripts/languages installs what it needs", strings.Join(k.probe, " "), err)
	}
}

// pay runs the snippet for these orders, and returns what it said: a line for each order, "42 paid" or another.
func (k snippetStack) pay(t *testing.T, s *snippetShop, file string, orders []snippetOrder) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if k.script == nil {
		cmd := exec.CommandContext(ctx, k.program[0], append(k.program[1:], file)...)
		cmd.Env, cmd.Stdin = s.shopEnv(t), lines(orders)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", strings.Join(k.program, " "), err)
		}
		return string(said)
	}
	var said strings.Builder
	for _, o := range orders {
		out, err := k.script(t, s, file, o).CombinedOutput()
		if err == nil {
			fmt.Fprintf(&said, "%d paid\n", o.id)
		}
		said.Write(out)
	}
	return said.String()
}

// shopEnv tells a program where the shop's database is.
func (s *snippetShop) shopEnv(t *testing.T) []string {
	t.Helper()
	var env []string
	rewrite(t, s.app, func(u *url.URL) {
		password, _ := u.User.Password()
		env = environment(append(libraries(),
			"SHOP_DIALECT="+s.driver, "SHOP_HOST="+u.Hostname(), "SHOP_USER="+u.User.Username(), "SHOP_PASSWORD="+password,
			"SHOP_DATABASE="+s.name,
		))
	})
	return env
}

// psqlScript is the line that the snippet's first comment shows.
func psqlScript(t *testing.T, s *snippetShop, file string, o snippetOrder) *exec.Cmd {
	cmd := exec.Command("psql", "--no-psqlrc", "--quiet", "--set", fmt.Sprintf("order=%d", o.id), "--set", "payload="+o.payload, "--file", file, s.through(t, o))
	cmd.Env = environment([]string{"PGCLIENTENCODING=" + o.charset})
	return cmd
}

// mysqlScript is the line that the snippet's first comment shows, for which a shell makes the digits.
func mysqlScript(t *testing.T, s *snippetShop, file string, o snippetOrder) *exec.Cmd {
	t.Helper()
	var host, port, user, password string
	rewrite(t, s.through(t, o), func(u *url.URL) {
		host, port, user = u.Hostname(), u.Port(), u.User.Username()
		password, _ = u.User.Password()
	})
	cmd := exec.Command("sh", "-c", `exec mysql "$@" <"$0"`, file, "--no-defaults", "--host="+host, "--port="+port, "--user="+user, // the proxy reads along
		"--loose-skip-ssl", "--loose-ssl-mode=DISABLED", "--default-character-set="+o.charset, fmt.Sprintf("--init-command=SET @order = %d, @payload = X'%s'", o.id, hex.EncodeToString([]byte(o.payload))), s.name)
	cmd.Env = environment([]string{"MYSQL_PWD=" + password})
	return cmd
}

// through is the application's URL, by the port of an order.
func (s *snippetShop) through(t *testing.T, o snippetOrder) string {
	t.Helper()
	return rewrite(t, s.app, func(u *url.URL) { u.Host = u.Hostname() + ":" + o.port })
}
