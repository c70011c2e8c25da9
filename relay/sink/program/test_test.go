//go:build linux

package program

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTest holds what a try tells, step by step, and that it starts nothing.
func TestTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := filepath.Join(dir, "began")
	script := func(name, first string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(first+"\necho >"+began+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := script("good", "#! /bin/sh -e", 0o755)
	for name, c := range map[string]struct {
		command string
		dir     string
		want    []string
	}{
		"script":         {good, dir, []string{"command: " + good, "interpreter: /bin/sh", "dir: " + dir}},
		"program":        {"/bin/sh", "", []string{"command: /bin/sh", "dir: /"}},
		"by name":        {"sh", "", []string{"command: /usr/bin/sh", "dir: /"}},
		"missing":        {dir + "/none", "", []string{"command failed: " + dir + "/none does not exist; install it"}},
		"missing name":   {"outboxd-none", "", []string{"command failed: outboxd-none is in none of /usr/local/sbin"}},
		"mode":           {script("mode", "#!/bin/sh", 0o644), "", []string{"command failed: " + dir + "/mode is not executable"}},
		"no interpreter": {script("snake", "#!/none/python3 -I", 0o755), "", []string{"command: " + dir + "/snake", "interpreter failed: /none/python3 does not exist"}},
		"no dir":         {"/bin/sh", dir + "/none", []string{"command: /bin/sh", "dir failed: dir " + dir + "/none cannot be entered: no such file"}},
		"a file for dir": {"/bin/sh", "/bin/sh", []string{"command: /bin/sh", "dir failed: dir /bin/sh is no directory"}},
	} {
		var steps []string
		s := newSink(t, func(cfg *Config) { cfg.Dir = c.dir }, c.command)
		s.Test(t.Context(), func(step, words string, err error) {
			if err != nil {
				step, words = step+" failed", err.Error()
			}
			steps = append(steps, fmt.Sprintf("%s: %s", step, words))
		})
		if !slices.EqualFunc(steps, c.want, strings.HasPrefix) {
			t.Errorf("%s: got\n%q\nwant\n%q", name, steps, c.want)
		}
	}
	if _, err := os.Stat(began); err == nil {
		t.Error("it was started")
	}
}

// TestLookUp holds that a name is looked up until it is found, and then no more.
func TestLookUp(t *testing.T) {
	t.Parallel()
	if found, err := lookUp("sh"); err != nil || !strings.HasSuffix(found, "/sh") {
		t.Errorf("%s, %v", found, err)
	}
	file := filepath.Join(t.TempDir(), "program")
	p := place{name: file}
	if _, err := p.path(); err == nil {
		t.Error("it is not there yet")
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := p.path(); err != nil || p.found != file {
		t.Errorf("%q, %v", p.found, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := p.path(); err == nil {
		t.Error("it is gone again")
	}
}
