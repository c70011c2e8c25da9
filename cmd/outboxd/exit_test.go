package main

import (
	"strings"
	"testing"
)

// TestExitCodes holds the codes that scripts rely on, and that a mistake is one line on the standard error.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	away := []string{"OUTBOXD_DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/d", "OUTBOXD_LISTEN=off"}
	for _, c := range []struct {
		args string
		env  []string
		code int
		want string
	}{
		{args: "version", code: exitOK},
		{args: "--help", code: exitOK},
		{args: "", code: exitOK},
		{args: "migrate print", code: exitOK},
		{args: "rnu", code: exitUsage, want: `outboxd: unknown command "rnu"; did you mean run?; see outboxd --help`},
		{args: "migrate down", code: exitUsage, want: `outboxd: unknown command "down"; see outboxd migrate --help`},
		{args: "run --twice", code: exitUsage, want: "outboxd: unknown flag: --twice; see outboxd run --help"},
		{args: "run now", code: exitUsage, want: "outboxd: outboxd run takes no arguments; see outboxd run --help"},
		{args: "version -o xml", code: exitUsage, want: "outboxd: -o wants table, json or jsonl"},
		{args: "migrate print --script nothing", code: exitUsage, want: `outboxd: --script: postgres has no script "nothing": roles (not SQLite) or drop`},
		{args: "run", code: exitConfiguration, want: "destinations: there is none; name one in the file, or set OUTBOXD_KAFKA_BROKERS or OUTBOXD_WEBHOOK_URL"},
		{
			args: "run -c testdata/config/stdout.yaml", code: exitConfiguration,
			want: "outboxd: no database: set OUTBOXD_DATABASE_URL or OUTBOXD_DATABASE_URL_FILE, or database.url_file in the configuration",
		},
		{args: "migrate status", env: away, code: exitDatabase},
		{args: "migrate up", env: away, code: exitDatabase},
		{args: "run --once -c testdata/config/stdout.yaml", env: away, code: exitDatabase},
		{
			args: "migrate status", env: []string{"OUTBOXD_DATABASE_URL=oracle://u:hunter2@h/d"}, code: exitConfiguration,
			want: "outboxd: database: the database URL begins with oracle: outboxd works on PostgreSQL, MySQL, MariaDB and SQLite",
		},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := cli(t, environment(c.env...), strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, stderr)
			}
			if code != exitOK && (stdout != "" || strings.Count(lastLine(stderr), "\n") != 0 || lastLine(stderr) == "") {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
			if c.want != "" && lastLine(stderr) != c.want || strings.Contains(stderr, "hunter2") {
				t.Errorf("got %q, want %q", stderr, c.want)
			}
		})
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[len(lines)-1]
}
