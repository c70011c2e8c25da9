package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// TestBadFiles meets what may stand at the path of a database URL: each is a line that names it and its mend, nothing is
// made or changed, and once it is mended the same DB works.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(newFile(t).closed(t))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name  string
		make  func(path string) error
		class dialect.Class
		says  string
	}{
		{"no file", func(string) error { return nil }, dialect.Login, "there is no file"},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }, dialect.Login, "is a directory"},
		{
			"no database", func(path string) error {
				return os.WriteFile(path, []byte(strings.Repeat("What a shop sells. ", 100)), 0o644)
			},
			dialect.Login, "is no database of SQLite",
		},
		{"half a database", func(path string) error { return os.WriteFile(path, good[:5000], 0o644) }, dialect.Away, "damaged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.db")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			d := testFile{path: path}.open(t, dialect.Options{})
			for name, look := range looks(t, d) {
				if err := look(); dialect.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s says %v, want %q", name, err, c.says)
				}
			}
			if _, err := os.Stat(path); c.name == "no file" && err == nil {
				t.Error("looking made the file")
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, good, 0o644); err != nil {
				t.Fatal(err)
			}
			for name, look := range looks(t, d) {
				if err := look(); err != nil {
					t.Errorf("after the mend %s says %v", name, err)
				}
			}
		})
	}
}

// TestNoFolder: making the file would not help, and is not advised.
func TestNoFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "none")
	d := testFile{path: filepath.Join(folder, "shop.db")}.open(t, dialect.Options{})
	if _, err := d.Migrate(t.Context()); dialect.ClassOf(err) != dialect.Login || !strings.Contains(err.Error(), "there is no folder "+folder+": make it") {
		t.Errorf("it says %v", err)
	}
}

// looks are calls of a person's commands and of a relay.
func looks(t *testing.T, d *DB) map[string]func() error {
	store, err := d.Store("a", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func() error{
		"CheckSchema": func() error { _, err := d.CheckSchema(t.Context()); return err },
		"Status":      func() error { _, err := d.Status(t.Context()); return err },
		"Claim": func() error {
			_, err := store.Claim(t.Context(), 1, time.Minute, []relay.Quota{testQuota(1)})
			return err
		},
		"Beat": func() error { return store.Beat(t.Context(), relay.Beat{}) },
	}
}

// closed ends the application's connection, so that the file is whole without its WAL.
func (f testFile) closed(t testing.TB) (path string) {
	t.Helper()
	f.exec(t, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := f.app.Close(); err != nil {
		t.Fatal(err)
	}
	return f.path
}

// TestMigrateMakesNoFolder tells that Migrate makes a file where its folder is, and nowhere else.
func TestMigrateMakesNoFolder(t *testing.T) {
	t.Parallel()
	d := testFile{path: filepath.Join(t.TempDir(), "absent", "shop.db")}.open(t, dialect.Options{})
	if _, err := d.Migrate(t.Context()); dialect.ClassOf(err) != dialect.Login {
		t.Errorf("Migrate says %v, want class %s", err, dialect.Login)
	}
}

// TestReadOnlyFile runs as a user who may read the file and not write to it: people can look, a relay says why it cannot
// work.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 1)
	path := f.closed(t)
	folder := filepath.Dir(path)
	for file, mode := range map[string]os.FileMode{path: 0o444, folder: 0o555} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o755) }) // otherwise it cannot be removed
	if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		_ = file.Close()
		t.Skip("this user may write to every file")
	}
	d := testFile{path: path}.open(t, dialect.Options{})
	if err := d.CheckShape(t.Context()); dialect.ClassOf(err) == "" || !strings.Contains(err.Error(), "needs the right") {
		t.Errorf("CheckShape says %v, want the right that is needed", err)
	}
}

// TestFullFile has a database that may not grow: nothing is lost, and it goes on once there is room.
func TestFullFile(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 200)
	s := f.relayStore(t, "a", time.Hour)
	claims := claim(t, s, testQuota(200))
	long := strings.Repeat("x", 2000)
	settlements := make([]relay.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = relay.Decide(relay.Try{Claim: c, Outcome: relay.Retry("http_5xx", long), Opened: true})
	}
	pages := func(most string) {
		t.Helper()
		if _, err := s.db.writer.ExecContext(t.Context(), "PRAGMA max_page_count = "+most); err != nil {
			t.Fatal(err)
		}
	}
	pages("1") // as many as there are
	back, err := s.Settle(t.Context(), settlements)
	if dialect.ClassOf(err) != dialect.Full || len(back) > 0 || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("Settle into a full file gave %d, %v, want class %s", len(back), err, dialect.Full)
	}
	pages("1000000")
	if back, err := s.Settle(t.Context(), settlements); err != nil || len(back) > 0 {
		t.Fatalf("Settle with room again gave %d, %v", len(back), err)
	}
	var recorded int
	if err := f.app.Get(&recorded, "SELECT count(*) FROM outbox_attempt"); err != nil || recorded != len(claims) {
		t.Errorf("%d attempts are recorded, %v, want %d", recorded, err, len(claims))
	}
}

// TestReplacedFile puts another database at the path, as a restore does. The watch notices, and what comes after works on
// the new file.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	f, other := newFile(t), newFile(t)
	other.fill(t, "restored", 1)
	restored := other.closed(t)
	s := f.relayStore(t, "a", time.Hour)
	era := func() string {
		t.Helper()
		era, _, err := s.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return era
	}
	if err := s.Beat(t.Context(), relay.Beat{}); err != nil {
		t.Fatal(err)
	}
	before := era()
	if again := era(); again != before {
		t.Errorf("the era went from %s to %s, and the file is the same", before, again)
	}
	path := f.closed(t)
	if err := os.Rename(restored, path); err != nil {
		t.Fatal(err)
	}
	for _, leftover := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + leftover); err != nil {
			t.Fatal(err)
		}
	}
	if after := era(); after == before {
		t.Errorf("the era is %s still, and the file is another one", after)
	}
	if keys, err := s.RoutingKeys(t.Context()); err != nil || fmt.Sprint(keys) != "[restored]" {
		t.Errorf("the routing keys are %v, %v, want those of the new file", keys, err)
	}
	if claims := claim(t, s, relay.Quota{RoutingKey: "restored", Limit: 1}); len(claims) != 1 {
		t.Errorf("%d messages of the new file were claimed, want 1", len(claims))
	}
}

// TestWideEncoding has a file whose texts are UTF-16, as some applications make them: what goes out is UTF-8 all the same.
func TestWideEncoding(t *testing.T) {
	t.Parallel()
	f := newEmptyFile(t)
	f.exec(t, "PRAGMA encoding = 'UTF-16'; CREATE TABLE shop_order (id INTEGER)")
	if _, err := f.open(t, dialect.Options{}).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.exec(t, `INSERT INTO outbox (type, aggregateid, payload, headers) VALUES ('orders', 'né😀', 'né😀', '{"ü": "é"}')`)
	s := f.relayStore(t, "a", time.Hour)
	claims := claim(t, s, testQuota(1))
	messages, err := s.Load(t.Context(), claims)
	if err != nil || len(messages) != 1 {
		t.Fatalf("Load gave %d, %v", len(messages), err)
	}
	m := messages[0]
	if string(m.Payload) != "né😀" || *m.AggregateID != "né😀" || m.RawHeaders != `{"ü": "é"}` || m.RoutingKey != orders {
		t.Errorf("loaded %q, %q, %q, %q", m.Payload, *m.AggregateID, m.RawHeaders, m.RoutingKey)
	}
	if back, err := s.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
		t.Errorf("Settle gave back %v, %v", back, err)
	}
}
