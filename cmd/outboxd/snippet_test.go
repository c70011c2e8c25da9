package main

import (
	"io/fs"
	"path"
	"strings"
	"testing"
)

// TestSnippetFiles: each snippet that is listed has one file for each of its dialects, and no file belongs to none.
func TestSnippetFiles(t *testing.T) {
	t.Parallel()
	files := 0
	for _, row := range snippetList() {
		if row.Dialects == "" {
			t.Errorf("%s has no file", row.Name)
			continue
		}
		for of := range strings.SplitSeq(row.Dialects, ", ") {
			text, err := snippetOf(row.Name, of)
			if err != nil || !strings.Contains(string(text), "shop_order") || !strings.HasSuffix(string(text), "\n") {
				t.Errorf("%s of %s: %v\n%s", row.Name, of, err, text)
			}
			files++
		}
	}
	err := fs.WalkDir(snippetFiles, "snippets", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files--
		}
		if depth := strings.Count(path.Dir(name), "/"); !entry.IsDir() && depth != 2 {
			t.Errorf("%s lies %d folders deep, want 2", name, depth)
		}
		return err
	})
	if err != nil || files != 0 {
		t.Errorf("%d files more are listed than there are; %v", files, err)
	}
}

// TestSnippetMistakes: what there is not is a mistake in the command line, and the list is named.
func TestSnippetMistakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"snippet cobol":                   `there is no snippet "cobol"; outboxd snippet lists them`,
		"snippet ../postgres":             `there is no snippet "../postgres"; outboxd snippet lists them`,
		"snippet php --dialect oracle":    "there is a snippet php for --dialect postgres or mysql only",
		"snippet psql --dialect mysql":    "there is a snippet psql for --dialect postgres only",
		"snippet php python":              "outboxd snippet takes one language; without it, it lists them",
		"snippet --output yaml":           "-o wants table, json or jsonl",
		"snippet --dialect mysql ../php/": `there is no snippet "../php/"; outboxd snippet lists them`,
	} {
		var stdout, stderr strings.Builder
		p := &program{env: environment(), stdout: &stdout, stderr: &stderr}
		if code := p.run(t.Context(), strings.Fields(args)); code != exitUsage || stdout.Len() > 0 || stderr.String() != "outboxd: "+want+"\n" {
			t.Errorf("%s: exit code %d, %s%s", args, code, &stdout, &stderr)
		}
	}
}
