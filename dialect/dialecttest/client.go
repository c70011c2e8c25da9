package dialecttest

import (
	"os"
	"os/exec"
	"testing"
)

// Client is the path of a database's own client, such as psql, which CI must have; elsewhere a test without it is skipped.
func Client(t *testing.T, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(name + " is not installed")
	}
	t.Skip(name + " is not installed")
	return ""
}
