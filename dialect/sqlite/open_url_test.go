package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		url  string
		path string
		err  error
	}{
		{"sqlite:shop.db", here + "/shop.db", nil},
		{"sqlite3:./data/../shop.db", here + "/shop.db", nil},
		{"file:shop.db", here + "/shop.db", nil},
		{"sqlite:/var/shop.db", "/var/shop.db", nil},
		{"sqlite:///var/shop.db", "/var/shop.db", nil},
		{"sqlite:////var/shop.db", "/var/shop.db", nil},
		{"sqlite://localhost/var/shop.db", "/var/shop.db", nil},
		{"file:///var/shop.db", "/var/shop.db", nil},
		{"sqlite:/var/my%20shop%3F%23%25é+a.db", "/var/my shop?#%é+a.db", nil},
		{"sqlite:/var/my shop:1.db", "/var/my shop:1.db", nil},
		{"sqlite:/var/shop.db?mode=ro", "", errSettings},
		{"file:shop.db?cache=shared", "", errSettings},
		{"sqlite:/var/shop.db#x", "", errSettings},
		{"sqlite:", "", errMemory},
		{"sqlite:///", "", errMemory},
		{"sqlite::memory:", "", errMemory},
		{"file::memory:", "", errMemory},
		{"sqlite:///:memory:", "/:memory:", nil},
		{"sqlite://shop.db", "", errHost},
		{"sqlite://host/var/shop.db", "", errHost},
		{"sqlite:100%.db", "", errURL},
		{"sqlite:a%00b", "", errURL},
		{"postgres://host/shop", "", errURL},
		{"shop.db", "", errURL},
		{"", "", errURL},
	}
	for _, c := range cases {
		path, err := parseURL(c.url)
		if path != c.path || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v, want %q, %v", c.url, path, err, c.path, c.err)
		}
	}
}

// Whatever a file may be called, what is opened is that file.
func TestOpensByAnyName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"shop.db", "my shop.db", "a?b.db", "a#b.db", "100%.db", "a+b&c=d.db", "é😀.db", "a:b.db", "-x", "%41.db"} {
		d := DB{path: filepath.Join(folder, name)}
		if _, err := d.Migrate(t.Context()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(found) != 10 {
		t.Errorf("the files are %q, %v", found, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]dialect.Options{
		"no schemas":     {URL: "sqlite:shop.db", Schema: "main"},
		"no pooler":      {URL: "sqlite:shop.db", Pooler: true},
		"not understood": {URL: "shop.db"},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", o, err, says)
		}
	}
}
