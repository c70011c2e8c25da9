package webhook

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

// update writes the tables of docs/outcomes.md anew: go test ./relay/sink/webhook -run TestOutcomesDocument -update.
var update = flag.Bool("update", false, "write the tables of docs/outcomes.md")

const document = "../../../docs/outcomes.md"

// TestOutcomesDocument sends a message to a real server for every status and every fault, lets the relay decide, and holds
// that docs/outcomes.md says just that.
func TestOutcomesDocument(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := replaceTable(t, string(old), "| Status |", statusTable(t))
	text = replaceTable(t, text, "| What happens |", faultTable(t))
	text = replaceTable(t, text, "| Outcome | Meaning |", costTable())
	if text == string(old) {
		return
	}
	if !*update {
		t.Fatalf("%s says something else than the program does; write its tables anew with -update, and read the difference", document)
	}
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceTable puts a table in the place of the one with that header.
func replaceTable(t *testing.T, text, header, table string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, header)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table that begins with %q", document, header)
	}
	return before + table + "\n" + after
}

// statusTable has a row for all statuses of one fate.
func statusTable(t *testing.T) string {
	t.Helper()
	w := newWire(t, func(net.Conn, int) {})
	w.script = func(c net.Conn, nth int) {
		requests, _, _ := w.seen()
		status := requests[nth-1].Header.Get("Status")
		reply("HTTP/1.1 "+status+" \r\nContent-Length: 0\r\n\r\n")(c, nth)
	}
	s := newSink(t, w.url(), nil)
	var fates []string
	statuses := map[string][]int{}
	for status := 200; status <= 599; status++ {
		m := newMessage("a")
		m.Headers = []relay.Header{{Name: "Status", Value: strconv.Itoa(status)}}
		o := s.Send(t.Context(), m)
		if o.Status != status {
			t.Errorf("status %d: %+v", status, o)
		}
		fate := string(o.Kind) + " | " + code(o.Class) + " | " + fateOf(o)
		if statuses[fate] == nil {
			fates = append(fates, fate)
		}
		statuses[fate] = append(statuses[fate], status)
	}
	if n := w.count(); n != 400 {
		t.Errorf("%d requests for 400 sends", n)
	}
	var b strings.Builder
	b.WriteString("| Status | Outcome | `error_class` | `attempts` | Then | In the end | `unknown_since` | `lapses` |\n|---|---|---|---|---|---|---|---|\n")
	for _, fate := range fates {
		fmt.Fprintf(&b, "| %s | %s |\n", ranges(statuses[fate]), fate)
	}
	return b.String()
}

// ranges writes ascending numbers, neighbours as from–to.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		switch j {
		case i:
			parts = append(parts, strconv.Itoa(numbers[i]))
		case i + 1:
			parts = append(parts, strconv.Itoa(numbers[i]), strconv.Itoa(numbers[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
