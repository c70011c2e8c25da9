package relay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDesign_NamesEachFile: whoever reads DESIGN.md finds every file of the package in its table.
func TestDesign_NamesEachFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Where things are\n")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "doc.go" {
			continue
		}
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("DESIGN.md does not say what %s holds", name)
		}
	}
}
