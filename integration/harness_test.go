// Package integration runs the whole program against real servers, and breaks things on purpose.
//
// The binary is started as a child, as it ships; faults come from outside: a proxy in front of the database or the
// broker holds or cuts what goes by, and the test kills or freezes the child in a state that it has observed.
package integration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// scratch is a folder for what all tests share; TestMain makes it.
var scratch string

// side by side, unless -parallel says otherwise: the tests wait for leases and clocks more than they compute.
const parallel = "10"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var err error
	if scratch, err = os.MkdirTemp("", "outboxd-integration-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

// program builds outboxd when the first test asks for it, with the race detector where the test itself has it, and
// returns its path.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "outboxd")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race", "-gcflags=modernc.org/sqlite/lib=-race=false") // as scripts/run-tests, and why
	}
	out, err := exec.Command("go", append(args, "../cmd/outboxd")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("outboxd does not build: %w\n%s", err, out)
	}
	return path, nil
})

// need returns the value of an environment variable that names a server. Without it the test is skipped, or fails
// where CI=true says that all servers should be there.
func need(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value != "" {
		return value
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set: scripts/with-servers sets it, CI=false skips instead", variable)
	}
	t.Skipf("%s is not set", variable)
	return ""
}

// scale is n with OUTBOXD_TEST_FULL=1, otherwise about a tenth of it and at least 1.
func scale(n int) int {
	if os.Getenv("OUTBOXD_TEST_FULL") == "1" {
		return n
	}
	return max(n/10, 1)
}

// scaleDuration is d with OUTBOXD_TEST_FULL=1, otherwise a tenth of it.
func scaleDuration(d time.Duration) time.Duration {
	if os.Getenv("OUTBOXD_TEST_FULL") == "1" {
		return d
	}
	return d / 10
}

// patience is how long a condition that must come true may take on a slow and busy machine. It bounds a test that would
// fail anyway, so that it can be generous.
const patience = 2 * time.Minute

// eventually waits until check returns nil, and fails the test with its last error after the time given.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %v", within, err)
		}
	}
}
