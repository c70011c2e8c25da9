package sqlite

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childFile is the variable that tells a test that it runs as the child of another, and on which file.
const childFile = "OUTBOXD_TEST_SQLITE_FILE"

const sayMark = "child says: "

// child runs one test of this package in a process of its own, on the same file. said gives the next line that it says, ""
// at its end. It is killed at the end of the test.
func (f testFile) child(t *testing.T, test string) (cmd *exec.Cmd, said func() string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childFile+"="+f.path)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // ends with this process
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	return cmd, func() string {
		for lines.Scan() {
			if line, ok := strings.CutPrefix(lines.Text(), sayMark); ok {
				return line
			}
		}
		return ""
	}
}

// say writes a line to the parent.
func say(t testing.TB, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(os.Stdout, sayMark+line); err != nil {
		t.Fatal(err)
	}
}
