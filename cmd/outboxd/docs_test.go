package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedKeys holds docs/configuration.md to the keys and variables that are read: none missing, none invented.
func TestDocumentedKeys(t *testing.T) {
	t.Parallel()
	doc := configurationDoc(t)
	want, got := map[string]bool{}, documentedKeys(doc)
	addKeys(want, "", reflect.TypeFor[config]())
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !got[path] {
			t.Errorf("%s is a key, and docs/configuration.md does not have it", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if !want[path] {
			t.Errorf("docs/configuration.md has %s, which is no key", path)
		}
	}
	for _, name := range append(envNames(), envFallback) {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("%s is read, and docs/configuration.md does not have it", name)
		}
	}
}

// TestDocumentedExamples holds that each example is taken without a warning, with files of its own in place of /etc/outboxd.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCredentials(t, dir)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(configurationDoc(t), -1)
	if len(examples) < 9 {
		t.Fatalf("docs/configuration.md has %d examples", len(examples))
	}
	for i, example := range examples {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		writeTo(t, file, []byte(strings.ReplaceAll(example[1], "/etc/outboxd", dir)))
		code, _, stderr := cli(t, environment("DATABASE_URL=postgres://h/d"), "config", "validate", "-c", file)
		if code != exitOK || stderr != "the configuration is good\n" {
			t.Errorf("exit %d:\n%s\n%s", code, stderr, example[1])
		}
	}
}

func configurationDoc(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documentedKeys are the sections that headings name, and the first cells of the tables under them.
func documentedKeys(doc string) map[string]bool {
	heading, row := regexp.MustCompile("^### `(.+)`$"), regexp.MustCompile("^\\| `([a-z_]+)` \\|")
	keys, section := map[string]bool{}, ""
	for line := range strings.SplitSeq(doc, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
			keys[section] = true
		} else if m := row.FindStringSubmatch(line); m != nil {
			keys[section+"."+m[1]] = true
		}
	}
	return keys
}

// addKeys notes the path of every key below a section; NAME, TYPE and STATUS stand for what a file may call as it likes. The
// keys of emit are the same under a type.
func addKeys(keys map[string]bool, path string, section reflect.Type) {
	for key, field := range fieldsOf(reflect.New(section).Elem()) {
		here, below := join(path, key), field.Type()
		keys[here] = true
		if below.Kind() == reflect.Map && below.Elem().Kind() == reflect.Struct && below.Elem() != reflect.TypeFor[Secret]() {
			here = join(here, map[string]string{"destinations": "NAME", "types": "TYPE", "outcomes": "STATUS"}[key])
			keys[here] = true
		}
		if here == "routes.types.TYPE.emit" {
			continue
		}
		if slices.Contains([]reflect.Kind{reflect.Map, reflect.Pointer, reflect.Slice}, below.Kind()) {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct && below != reflect.TypeFor[Secret]() {
			addKeys(keys, here, below)
		}
	}
}

// writeCredentials makes the files that the example names and that are read before anything is connected to.
func writeCredentials(t *testing.T, dir string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	identity := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(identity.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: identity.Certificate[0]})
	for _, name := range []string{"kafka-ca.pem", "partners-ca.pem", "partners-client.pem", "bank-ca.pem", "client.pem"} {
		writeTo(t, filepath.Join(dir, name), cert)
	}
	for _, name := range []string{"partners-client.key", "client.key"} {
		writeTo(t, filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	}
	for _, name := range []string{"kafka-password", "billing-token", "billing-password", "api-key", "client-secret"} {
		writeTo(t, filepath.Join(dir, name), []byte("secret\n"))
	}
	writeTo(t, filepath.Join(dir, "whsec"), []byte("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\nwhsec_MTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4\n"))
	writeTo(t, filepath.Join(dir, "database-url"), []byte("postgres://shop@db.example/shop\n"))
}

func writeTo(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
