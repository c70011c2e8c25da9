// Command testreport reads what `go test -json` prints and shows it to people: a line for each package, the whole
// output of what failed, and at the end how many tests ran, and how many were skipped and why. It exits with 1 if
// anything failed, or if nothing ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`. Build output comes with ImportPath instead of Package.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type test struct{ pkg, name string }

type report struct {
	out     io.Writer
	outputs map[test][]string // of tests and packages that have not ended
	passed  int
	failed  []string
	blamed  map[string]bool // packages that are in failed, by a name of their own or of a test
	skipped map[string]int  // by reason
}

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.close() {
		os.Exit(1)
	}
}

func newReport(out io.Writer) *report {
	return &report{out: out, outputs: map[test][]string{}, blamed: map[string]bool{}, skipped: map[string]int{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(r.out, string(line)) // go itself writes plain text when it cannot even begin
			} else {
				r.event(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) event(e event) {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		r.outputs[key] = append(r.outputs[key], e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		pkg, _, _ := strings.Cut(e.ImportPath, " ") // "p [p.test]" is p, built for its tests
		r.fail(strings.TrimSuffix(pkg, ".test"), " does not build")
	case "pass", "fail", "skip":
		r.end(key, e)
		delete(r.outputs, key)
	}
}

func (r *report) end(key test, e event) {
	if key.name == "" {
		r.endPackage(key, e)
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped[reason(r.outputs[key])]++
	case "fail":
		r.fail(key.pkg, " "+key.name)
		fmt.Fprint(r.out, strings.Join(r.outputs[key], ""))
	}
}

func (r *report) fail(pkg, what string) {
	r.failed = append(r.failed, pkg+what)
	r.blamed[pkg] = true
}

// endPackage prints the package's own lines; those of a failed one tell of panics and time-outs too, of the seed, and
// then of the tests that had not ended.
func (r *report) endPackage(key test, e event) {
	failed := e.Action == "fail"
	for _, line := range r.outputs[key] {
		seed := strings.HasPrefix(line, "-test.shuffle")
		if line != "PASS\n" && line != "FAIL\n" && (failed || !seed) {
			fmt.Fprint(r.out, line)
		}
	}
	if !failed {
		return
	}
	if !r.blamed[key.pkg] {
		r.fail(key.pkg, "")
	}
	for other, lines := range r.outputs {
		if other.pkg == key.pkg && other.name != "" {
			fmt.Fprintf(r.out, "did not end: %s\n%s", other.name, strings.Join(lines, ""))
			delete(r.outputs, other)
		}
	}
}

// reason is what a skipped test said last, without the place where it said it.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		if place, text, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") {
			return text
		}
		return line
	}
	return "no reason given"
}

func (r *report) close() bool {
	total := 0
	for _, n := range r.skipped {
		total += n
	}
	for _, name := range r.failed {
		fmt.Fprintln(r.out, "FAILED:", name)
	}
	fmt.Fprintf(r.out, "tests: %d passed, %d failed, %d skipped\n", r.passed, len(r.failed), total)
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(r.out, "skipped: %d × %s\n", r.skipped[why], why)
	}
	return len(r.failed) == 0 && r.passed > 0
}
