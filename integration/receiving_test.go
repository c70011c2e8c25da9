package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const receivingSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

// documentedReceiver is a receiver of docs/receiving.md, and what runs it.
type documentedReceiver struct {
	language, dialect string
	command           func(t *testing.T, file, port string) *exec.Cmd
	env               string
}

func documentedReceivers() []documentedReceiver {
	return []documentedReceiver{
		{"php", "mysql", phpReceiver, "PHP_CLI_SERVER_WORKERS=4"},
		{"python", "postgres", pythonReceiver, ""},
		{"java", "postgres", javaReceiver, ""},
		{"go", "mysql", goReceiver, ""},
	}
}

// TestReceivers runs the receivers of docs/receiving.md, as they stand there, behind a relay with the page's configuration. They
// refuse what is not signed and what comes with another body, let a second request come again while the first is under way,
// and have each effect once, also where every fifth part of what goes to and fro is lost with its connection.
func TestReceivers(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		for _, d := range documentedReceivers() {
			if d.dialect == e.driver {
				t.Run(d.language, func(t *testing.T) {
					t.Parallel()
					r := startReceiving(t, e, d)
					r.refuses(t)
					r.runsOne(t)
					r.hasEffectsOnce(t)
				})
			}
		}
	})
}

// receiving is one of them while it runs.
type receiving struct {
	*database
	url    string
	signer *standardwebhooks.Webhook
}

func startReceiving(t *testing.T, e engine, d documentedReceiver) *receiving {
	t.Helper()
	stacks := snippetStacks(t)
	stacks[d.language].need(t)
	r := &receiving{database: e.database(t)}
	r.tables(t)
	file := filepath.Join(t.TempDir(), documentedFile(t, d.language).name)
	if err := os.WriteFile(file, []byte(documentedFile(t, d.language).text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	cmd := d.command(t, file, port)
	rewrite(t, r.database.url, func(u *url.URL) {
		password, _ := u.User.Password()
		cmd.Env = environment([]string{
			"WEBHOOK_SECRET=" + receivingSecret, "RECEIVE=" + file, "SHOP_HOST=" + u.Hostname(), "SHOP_PORT=" + u.Port(),
			"SHOP_USER=" + u.User.Username(), "SHOP_PASSWORD=" + password, "SHOP_DATABASE=" + r.name, d.env,
		})
	})
	startChild(t, cmd)
	r.url = "http://" + address + "/charges"
	eventually(t, patience, func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	})
	var err error
	if r.signer, err = standardwebhooks.NewWebhook(receivingSecret); err != nil {
		t.Fatal(err)
	}
	return r
}

// startChild runs a command until the end of the test.
func startChild(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	said, started, exited := &output{}, make(chan error), make(chan struct{})
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.WaitDelay = said, said, childAttributes(), time.Second
	go func() {
		runtime.LockOSThread() // as start does, and why
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // PHP ends its workers then
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		<-exited
		if t.Failed() {
			t.Logf("%s says\n%s", cmd, said)
		}
	})
}

// tables makes those of the page, and the one of charges.
func (r *receiving) tables(t *testing.T) {
	t.Helper()
	heading, number := "**MySQL, MariaDB**", "bigint AUTO_INCREMENT PRIMARY KEY"
	if r.driver == "postgres" {
		heading, number = "**PostgreSQL**", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	}
	_, section, found := strings.Cut(receivingPage(t), "\n"+heading)
	if !found {
		t.Fatalf("docs/receiving.md has no %s", heading)
	}
	for statement := range strings.SplitSeq(blocks(t, section)[0].text, "\n\n") {
		if strings.HasPrefix(statement, "CREATE ") {
			r.exec(t, statement)
		}
	}
	r.exec(t, "CREATE TABLE charge (number "+number+", order_id bigint NOT NULL)")
}

func receivingPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/receiving.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// file is a block whose first line names it.
type file struct{ name, text string }

func documentedFile(t *testing.T, language string) file {
	t.Helper()
	for _, b := range blocks(t, receivingPage(t)) {
		if b.language == language {
			first, _, _ := strings.Cut(b.text, "\n")
			return file{first[strings.LastIndex(first, " ")+1:], b.text}
		}
	}
	t.Fatalf("docs/receiving.md has no block in %s", language)
	return file{}
}

func phpReceiver(_ *testing.T, _, port string) *exec.Cmd {
	return exec.Command(debian("php"), "-S", "127.0.0.1:"+port, "samples/receivers/server.php")
}

func pythonReceiver(_ *testing.T, _, port string) *exec.Cmd {
	return exec.Command(debian("python3"), "samples/receivers/server.py", port)
}

func javaReceiver(t *testing.T, file, port string) *exec.Cmd {
	library, classes := jars(t, "postgresql.jar"), filepath.Dir(file)
	build(t, exec.Command("javac", "-proc:none", "-cp", library, "-d", classes, "samples/receivers/Server.java", file))
	return exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", library+":"+classes, "Server", port)
}

// goReceiver puts before the page's function what its editor would: package and imports.
func goReceiver(t *testing.T, file, port string) *exec.Cmd {
	folder := filepath.Dir(file)
	server, err := os.ReadFile("samples/receivers/server.go")
	if err != nil {
		t.Fatal(err)
	}
	receive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"server.go": string(server), "receive.go": goReceiverImports + string(receive)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(folder, "receiver")
	build(t, exec.Command("go", "build", "-o", program, filepath.Join(folder, "server.go"), filepath.Join(folder, "receive.go")))
	return exec.Command(program, port)
}

const goReceiverImports = `package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/go-sql-driver/mysql"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

`

func build(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// post sends a request that was signed so long ago, and returns status and answer.
func (r *receiving) post(t *testing.T, key, body string, age time.Duration) (int, string) {
	t.Helper()
	at := time.Now().Add(-age)
	signature, err := r.signer.Sign(key, at, []byte(body))
	if err != nil {
		t.Error(err)
	}
	return r.send(t, body, map[string]string{"webhook-id": key, "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature})
}

func (r *receiving) send(t *testing.T, body string, header map[string]string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	for name, value := range header {
		q.Header.Set(name, value)
	}
	q.Close = true
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// refuses: each effect needs a signature of today, and a key of its own.
func (r *receiving) refuses(t *testing.T) {
	first := ""
	for _, step := range []struct {
		key, body string
		age       time.Duration
		status    int
		charges   int
	}{
		{"a", `{"order":1}`, 0, http.StatusOK, 1},
		{"a", `{"order":1}`, 0, http.StatusOK, 1},
		{"a", `{"order":2}`, 0, http.StatusUnprocessableEntity, 1},
		{"b", `{"order":"x"}`, 0, http.StatusUnprocessableEntity, 1},
		{"b", `{"order":2}`, 0, http.StatusOK, 2},
		{"c", `{"order":3}`, 6 * time.Minute, http.StatusUnauthorized, 2},
		{"c", `{"order":3}`, -6 * time.Minute, http.StatusUnauthorized, 2},
	} {
		status, answer := r.post(t, step.key, step.body, step.age)
		if status != step.status {
			t.Errorf("%+v: %d %s", step, status, answer)
		}
		r.expect(t, step.charges, "SELECT count(*) FROM charge")
		if step.key == "a" && status == http.StatusOK {
			if first != "" && answer != first {
				t.Errorf("a repeat is answered %s, and the first request %s", answer, first)
			}
			first = answer
		}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	for _, header := range []map[string]string{
		nil,
		{"webhook-id": "d", "webhook-timestamp": at},
		{"webhook-id": "d", "webhook-timestamp": at, "webhook-signature": "v1,MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
		{"webhook-id": "d", "webhook-timestamp": "soon", "webhook-signature": "v1, é v1"},
	} {
		if status, answer := r.send(t, `{"order":4}`, header); status != http.StatusUnauthorized {
			t.Errorf("%v: %d %s", header, status, answer)
		}
	}
	r.expect(t, 2, "SELECT count(*) FROM charge")
}

// runsOne: while a request is under way, the same one is told to come again; after it a repeat has its answer.
func (r *receiving) runsOne(t *testing.T) {
	until := filepath.Join(t.TempDir(), "until")
	body := fmt.Sprintf(`{"order":5,"until":%q}`, until)
	type answer struct {
		status int
		text   string
	}
	first := make(chan answer)
	go func() {
		status, text := r.post(t, "e", body, 0)
		first <- answer{status, text}
	}()
	eventually(t, patience, func() error {
		_, err := os.Stat(until + ".begun")
		return err
	})
	if status, text := r.post(t, "e", body, 0); status != http.StatusConflict {
		t.Errorf("while the first request is under way: %d %s", status, text)
	}
	if err := os.WriteFile(until, nil, 0o600); err != nil {
		t.Error(err)
	}
	one := <-first
	if one.status != http.StatusOK {
		t.Errorf("the first request: %v", one)
	}
	if status, text := r.post(t, "e", body, 0); status != http.StatusOK || text != one.text {
		t.Errorf("at first %v, and again %d %s", one, status, text)
	}
	r.expect(t, 1, "SELECT count(*) FROM charge WHERE order_id = 5")
}

// rawWire passes on what has come, as it comes.
type rawWire struct{}

func (rawWire) next(s side, in *bufio.Reader) (part, error) {
	data := make([]byte, 64<<10)
	n, err := in.Read(data)
	return part{side: s, data: data[:n]}, err
}

// hasEffectsOnce: a relay with the page's configuration, over connections that break.
func (r *receiving) hasEffectsOnce(t *testing.T) {
	const orders = 40
	var target string
	rewrite(t, r.url, func(u *url.URL) { target = u.Host })
	p := newProxy(t, target, func(*proxy) wire { return rawWire{} })
	var passed atomic.Int64
	known := make(chan struct{})
	close(known)
	p.set(&trap{fate: known, cutoff: true, match: func(part) bool { return passed.Add(1)%5 == 0 }})

	for i := range orders {
		r.exec(t, fmt.Sprintf(`INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
			VALUES ('charges', '%d', 'charge_order', '{"order":%[1]d}')`, 100+i))
	}
	config := strings.Replace(documentedFile(t, "yaml").text, "http://127.0.0.1:8080/charges", "http://"+p.address()+"/charges", 1)
	startRelay(t, "relay: {name: billing, lease: 6s}\nhttp: {listen: \"off\"}\n"+config, append(r.env(), "WEBHOOK_SECRET="+receivingSecret))
	r.waitCount(t, patience, orders, "SELECT count(*) FROM outbox WHERE state = 'done'")
	r.expect(t, orders, "SELECT count(*) FROM charge WHERE order_id >= 100")
	r.expect(t, orders, "SELECT count(DISTINCT order_id) FROM charge WHERE order_id >= 100")
	const result = "SELECT count(*) FROM outbox o JOIN charge c ON concat(c.order_id, '') = o.aggregateid WHERE rtrim(o.result) "
	r.expect(t, 0, result+"NOT IN ('', concat('charge-', c.number))") // none where the answer broke off behind its status
	if r.count(t, result+"= concat('charge-', c.number)") < orders/2 {
		t.Error("the answers of the receiver are not kept")
	}
	if r.count(t, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'unknown'") == 0 {
		t.Error("no answer was lost")
	}
}
