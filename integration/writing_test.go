package integration

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writingPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/writing.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWritingShowsSnippets: docs/writing.md shows each snippet as `outboxd snippet` prints it, and says of the same ones that
// they are executed.
func TestWritingShowsSnippets(t *testing.T) {
	t.Parallel()
	page := writingPage(t)
	list := allSnippets(t)
	for _, one := range list {
		_, section, found := strings.Cut(page, "\n### "+one.Name+"\n")
		stdout, stderr, code := outboxd(t, nil, "snippet", one.Name)
		if !found || code != 0 {
			t.Errorf("%s: docs/writing.md has a section: %v; outboxd snippet: exit code %d, %s", one.Name, found, code, stderr)
			continue
		}
		if shown := blocks(t, section)[0].text; shown != stdout {
			t.Errorf("docs/writing.md shows of %s\n%s\nand outboxd snippet prints\n%s", one.Name, shown, stdout)
		}
		_, row, _ := strings.Cut(page, "\n| [`"+one.Name+"`]")
		row, _, _ = strings.Cut(row, "\n")
		if !strings.Contains(row, "| "+one.Stack+" |") || strings.Contains(row, "| yes") != one.Executed {
			t.Errorf("docs/writing.md has of %s the row %q; it is executed: %v", one.Name, row, one.Executed)
		}
	}
	if shown := strings.Count(page, "\n### "); shown != len(list) {
		t.Errorf("docs/writing.md shows %d snippets, and there are %d", shown, len(list))
	}
}

// TestWritingRecipes does what docs/writing.md says of tests, in its order, with the shop of the snippets.
func TestWritingRecipes(t *testing.T) {
	t.Parallel()
	snippetStacks(t)["python-django"].need(t)
	s := newShop(t, postgresEngine())
	s.exec(t, "INSERT INTO shop_order (id) VALUES (42)")
	_, section, _ := strings.Cut(writingPage(t), "\n## Testing ")
	folder := t.TempDir()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(folder, "outboxd")); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	script := "set -eux\nPATH=$PWD:$PATH\n"
	for _, b := range blocks(t, section) {
		text := strings.ReplaceAll(b.text, "127.0.0.1:8089", address)
		switch b.language {
		case "sh":
			script += text
		case "sql":
			script += "psql --no-psqlrc --set ON_ERROR_STOP=1 \"$OUTBOXD_DATABASE_URL\" <<'SQL'\n" + text + "SQL\n"
		default:
			if err := os.WriteFile(filepath.Join(folder, b.file(t)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			switch b.file(t) {
			case "shop.yaml": // in a database of its own
				script += "psql --no-psqlrc --command 'DELETE FROM outbox' \"$OUTBOXD_DATABASE_URL\"\n"
			case "test_pay_order.py":
				script += debian("python3") + " \"$SAMPLES/python-django-test.py\" " + s.snippet(t, "python-django", folder) + " test_pay_order\n" + payInPython
			}
		}
	}
	samples, err := filepath.Abs("samples/snippets")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = folder, time.Second
	cmd.Env = append(s.shopEnv(t), "SAMPLES="+samples, "SHOP_PORT="+portOf(t, s.app), "OUTBOXD_LISTEN=off", "PYTHONDONTWRITEBYTECODE=1")
	rewrite(t, s.url, func(u *url.URL) { // as the page says, not as the application: that reads no payload
		password, _ := u.User.Password()
		cmd.Env = append(cmd.Env, "SHOP_USER="+u.User.Username(), "SHOP_PASSWORD="+password)
	})
	cmd.Env = append(cmd.Env, s.env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// payInPython is the application of the second recipe, committing.
const payInPython = `psql --no-psqlrc --set order=42 --set payload='{"id":42}' --file <(outboxd snippet psql) "$OUTBOXD_DATABASE_URL"
`
