package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// initFlags are all combinations of what init can be told.
func initFlags() (all [][]string) {
	databases := [][]string{{"--database", "postgres"}, {"--database", "mysql"}, {"--database", "sqlite"}}
	urls := [][]string{{"--url-file", "db-url"}, {"--url-env", "SHOP_DATABASE"}}
	webhook := []string{"--destination", "webhook", "--url", "https://billing.internal/commands?shop=1", "--ordered=false"}
	destinations := [][]string{
		{"--destination", "stdout"},
		{"--destination", "stdout", "--ordered=false", "--match", "trial.*"},
		{"--destination", "kafka", "--brokers", "kafka-1:9092, kafka-2:9092"},
		{"--destination", "kafka", "--brokers", "kafka-1:9092", "--ordered=false", "--match", "orders"},
	}
	for _, dedupe := range []string{"24h", "never"} {
		for _, auth := range [][]string{
			{},
			{"--auth", "none"},
			{"--auth", "bearer"},
			{"--auth", "basic", "--username", "sh\"op \\ #"},
			{"--auth", "oauth2", "--token-url", "https://id.example/token", "--client-id", "shop"},
		} {
			destinations = append(destinations, slices.Concat(webhook, []string{"--dedupe", dedupe}, auth))
		}
	}
	for _, database := range databases {
		for _, url := range urls {
			for _, destination := range destinations {
				all = append(all, slices.Concat(database, url, destination))
			}
		}
	}
	return all
}

// TestInitIsValid holds that all that init can write passes config validate, once what it names is there.
func TestInitIsValid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	urls := map[string]string{
		"postgres": "postgres://u@127.0.0.1/d", "mysql": "mysql://u@127.0.0.1/d", "sqlite": "sqlite://" + filepath.ToSlash(filepath.Join(dir, "shop.db")),
	}
	for _, name := range []string{"commands-token", "commands-password", "commands-client-secret"} {
		writeTo(t, filepath.Join(dir, name), []byte("s3cret\n"))
	}
	file := filepath.Join(dir, "outboxd.yaml")
	for _, flags := range initFlags() {
		code, stdout, stderr := cli(t, environment(), append([]string{"init", "--output", "-"}, flags...)...)
		if code != exitOK || stderr != "" {
			t.Fatalf("%q: exit %d: %s", flags, code, stderr)
		}
		url := urls[flags[1]]
		writeTo(t, filepath.Join(dir, "db-url"), []byte(url+"\n"))
		text := strings.NewReplacer("./commands-", dir+"/commands-", `"db-url"`, `"`+dir+`/db-url"`).Replace(stdout)
		writeTo(t, file, []byte(text))
		code, _, stderr = cli(t, environment("SHOP_DATABASE="+url), "config", "validate", "-c", file)
		if code != exitOK || stderr != "the configuration is good\n" {
			t.Errorf("%q: exit %d: %s\n%s", flags, code, stderr, text)
		}
	}
}

// TestInitSaysWhatIsMissing holds that without a person init asks nothing, and that mistakes are named by their flag.
func TestInitSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                               "init needs --database, --url-file or --url-env, --destination; see outboxd init --help",
		"--destination kafka":                            "init needs --database, --url-file or --url-env, --brokers; see outboxd init --help",
		"--destination webhook":                          "init needs --database, --url-file or --url-env, --url, --dedupe, --ordered=false; see outboxd init --help",
		"--destination smtp":                             "--destination wants kafka, webhook or stdout",
		"--database oracle":                              "--database wants postgres, mysql or sqlite",
		"--url-file a --url-env":                         "flag needs an argument: --url-env; see outboxd init --help",
		"--url-file a --url-env b":                       "give one of --url-file and --url-env",
		"--url-env postgres://u:hunter2@h/d":             "--url-env wants the name of a variable, not what it holds",
		"--url-file postgres://u:hunter2@h/d":            "--url-file wants the name of a file, not what it holds",
		"--destination kafka --auth bearer":              "--auth goes with another --destination or --auth",
		"--destination webhook --auth key":               "--auth wants none, bearer, basic or oauth2",
		"--destination webhook --auth none --username u": "--username goes with another --destination or --auth",
		"--url=": "--url wants an answer",
		"--database sqlite --url-env A --destination kafka --brokers kafka":                                                      "--brokers: wants host:port, such as kafka:9092",
		"--database sqlite --url-env A --destination stdout --match *a*":                                                         `--match: "*" can stand at the end only`,
		"--database sqlite --url-env A --destination webhook --url https://u:hunter2@h/ --dedupe 24h --ordered=false":            "--url: has a user or a password in it, which would not be sent; take them out",
		"--database sqlite --url-env A --destination webhook --url https://h/ --dedupe 24 --ordered=false":                       "--dedupe: wants how long the receiver remembers an Idempotency-Key, such as 24h, and at least 1s; or never",
		"--database sqlite --url-env A --destination webhook --url https://h/ --dedupe 24h --ordered=true":                       "--ordered: order per key comes in a later release; take ordered out, or say false",
		"--database sqlite --url-env A --destination webhook --url https://h/ --dedupe 24h --ordered=false --auth oauth2":        "init needs --token-url, --client-id; see outboxd init --help",
		"--database sqlite --url-env A --destination webhook --url https://h/ --dedupe 24h --ordered=false --output none/x.yaml": "--output: cannot read none/x.yaml: no such file or directory",
	} {
		file := filepath.Join(t.TempDir(), "outboxd.yaml")
		code, stdout, stderr := cli(t, environment(), append([]string{"init", "--output", file}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || stderr != "outboxd: "+want+"\n" {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
		if _, err := os.Lstat(file); err == nil {
			t.Errorf("%s: it wrote a file", args)
		}
	}
}

// TestInitOverwritesNothing holds that a file that is there stays as it is, unless --force says otherwise.
func TestInitOverwritesNothing(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "outboxd.yaml", "# mine\n")
	args := []string{"init", "--output", file, "--database", "sqlite", "--url-env", "SHOP_DATABASE", "--destination", "stdout"}
	code, _, stderr := cli(t, environment(), args...)
	if text, err := os.ReadFile(file); code != exitNotAllowed || !strings.Contains(stderr, "--force") || err != nil || string(text) != "# mine\n" {
		t.Errorf("exit %d: %s: %s, %v", code, stderr, text, err)
	}
	code, _, stderr = cli(t, environment(), append(args, "--force")...)
	if text, err := os.ReadFile(file); code != exitOK || !strings.Contains(stderr, "config validate -c "+file) || err != nil ||
		!strings.Contains(string(text), `url_env: "SHOP_DATABASE"`) || strings.Contains(string(text), "mine") {
		t.Errorf("exit %d: %s: %s, %v", code, stderr, text, err)
	}
}

// TestInitAsks holds that each question comes again until its answer can be one, and that what flags said is not asked.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	a := &answers{database: "mysql", given: func(flag string) bool { return flag == "database" }}
	var out strings.Builder
	err := a.ask(context.Background(), strings.NewReader(
		"sqlite://x\n\nsmtp\nwebhook\nhttp://u:p@h/\nhttps://h/x\n24\n24h\ntrue\nfalse\nkey\noauth2\nid\nhttps://id/token\n\nshop\n*x*\ncharges\n"), &out)
	if err != nil {
		t.Fatal(err)
	}
	want := answers{
		database: "mysql", urlEnv: "DATABASE_URL", destination: "webhook", url: "https://h/x", dedupe: "24h", ordered: "false",
		auth: "oauth2", tokenURL: "https://id/token", clientID: "shop", match: "charges",
	}
	if a.text() != want.text() || len(a.missing()) > 0 || a.checkWhole() != nil {
		t.Errorf("got\n%s\nwant\n%s", a.text(), want.text())
	}
	if n := strings.Count(out.String(), "  "); n != 9 || strings.Contains(out.String(), "Which database holds") {
		t.Errorf("%d refusals, want 9:\n%s", n, out.String())
	}
}

// TestInitAskedByNobody holds that the end of the input, and of the program, end the questions.
func TestInitAskedByNobody(t *testing.T) {
	t.Parallel()
	a := &answers{given: func(string) bool { return false }}
	var out strings.Builder
	if err := a.ask(context.Background(), strings.NewReader("postgres\n"), &out); err != nil || a.database != "postgres" || len(a.missing()) == 0 {
		t.Errorf("%v: %+v", err, a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ask(ctx, r, &out); err == nil {
		t.Error("it goes on asking")
	}
	_ = w.Close()
	eventually(t, "the reader ends", func() bool { _, err := r.Read(make([]byte, 1)); return err != nil })
	_ = r.Close()
}
