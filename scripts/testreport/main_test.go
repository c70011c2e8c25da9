package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		good bool
		want []string
	}{
		"skips are counted by reason": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: set X\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: set X\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.01s\n"}
{"Action":"pass","Package":"p"}
`,
			good: true,
			want: []string{"ok  \tp\t0.01s\n", "tests: 1 passed, 0 failed, 2 skipped\n", "skipped: 2 × set X\n"},
		},
		"a failure shows its output": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`,
			want: []string{"a_test.go:3: wrong", "FAILED: p TestA\n", "0 passed, 1 failed"},
		},
		"a test that never ended is named": {
			in: `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN TestB\n"}
{"Action":"output","Package":"p","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`,
			want: []string{"panic: boom", "did not end: TestB", "FAILED: p\n"},
		},
		"a build that failed": {
			in: `{"ImportPath":"p","Action":"build-output","Output":"a.go:1:1: syntax error\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p"}
`,
			want: []string{"syntax error", "FAILED: p does not build\n", "1 failed"},
		},
		"nothing ran": {in: "go: no such tool\n", want: []string{"go: no such tool", "0 passed"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(tt.in)); err != nil {
				t.Fatal(err)
			}
			if good := r.close(); good != tt.good {
				t.Errorf("close() = %t, want %t; it printed\n%s", good, tt.good, out.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
		})
	}
}
