package main

import (
	"bytes"
	"encoding/json"
	"strings"
)

// diffLines is how many lines of a difference are shown, and diffContext how many that stay beside one that changes.
const (
	diffLines   = 30
	diffContext = 2
)

// difference shows what changes in a payload, line by line; empty where one of the two is no JSON.
func difference(before, after []byte) string {
	_, plain, err := parsePayload(before)
	if err != nil {
		return ""
	}
	if _, after, err = parsePayload(after); err != nil {
		return ""
	}
	marked := diff(linesOf(plain), linesOf(after))
	var b strings.Builder
	shown := 0
	for i, line := range marked {
		near := marked[max(0, i-diffContext):min(len(marked), i+diffContext+1)]
		if !changes(near) {
			continue
		}
		if shown++; shown > diffLines {
			b.WriteString("    …\n")
			break
		}
		b.WriteString("  " + line[:2] + harmless(clip(line[2:])) + "\n")
	}
	return b.String()
}

func changes(lines []string) bool {
	for _, line := range lines {
		if line[0] != ' ' {
			return true
		}
	}
	return false
}

func linesOf(payload []byte) []string {
	var b bytes.Buffer
	_ = json.Indent(&b, payload, "", "  ") // it was written just now
	return strings.Split(b.String(), "\n")
}

// diffCells bounds the table of a difference: what is longer is shown as replaced.
const diffCells = 1 << 22

// diff is all lines of both, "- " before those that go, "+ " before those that come and "  " before those that stay: by
// the longest common subsequence.
func diff(before, after []string) (marked []string) {
	n, m := len(before), len(after)
	if n*m > diffCells {
		return append(mark("- ", before), mark("+ ", after)...)
	}
	common := make([][]int, n+1) // how many lines the rest of both has in common
	for i := range common {
		common[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < n && j < m {
		switch {
		case before[i] == after[j]:
			marked = append(marked, "  "+before[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			marked = append(marked, "- "+before[i])
			i++
		default:
			marked = append(marked, "+ "+after[j])
			j++
		}
	}
	return append(append(marked, mark("- ", before[i:])...), mark("+ ", after[j:])...)
}

func mark(sign string, lines []string) (marked []string) {
	for _, line := range lines {
		marked = append(marked, sign+line)
	}
	return marked
}
