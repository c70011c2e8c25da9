package program

import (
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestValidate holds that each setting that cannot work is named, with the mend and without a value.
func TestValidate(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"":                                     {Command: []string{"charge", "", strings.Repeat("x", 128<<10-1)}, Env: map[string]string{"KEY": strings.Repeat("x", 128<<10-len("KEY=")-1)}, Outcomes: map[string]relay.Rule{"0": {Kind: relay.KindDone}, "255": {Kind: relay.KindRetry, Limit: 5}}},
		"program.command: is empty; name":      {},
		"program.command[0]: is neither":       {Command: []string{"bin/charge"}},
		"program.command[1]: has a NUL":        {Command: []string{"/bin/charge", "hunter2\x00"}},
		"program.dir: is no absolute path":     {Command: []string{"/a"}, Dir: "x"},
		"program.grace: is negative":           {Command: []string{"/a"}, Grace: -time.Second},
		"program.cut_off: is negative":         {Command: []string{"/a"}, CutOff: -1},
		`program.env: "A-B" is no name`:        {Command: []string{"/a"}, Env: map[string]string{"A-B": "hunter2"}},
		"program.env: OUTBOX_ID is set by":     {Command: []string{"/a"}, Env: map[string]string{"OUTBOX_ID": "hunter2"}},
		"program.env: TRACEPARENT is set by":   {Command: []string{"/a"}, Env: map[string]string{"TRACEPARENT": ""}},
		"program.env: the value of KEY has":    {Command: []string{"/a"}, Env: map[string]string{"KEY": "hunter2\x00"}},
		"program.env: the value of KEY is":     {Command: []string{"/a"}, Env: map[string]string{"KEY": strings.Repeat("x", 128<<10-len("KEY="))}},
		"program.command[1]: is longer":        {Command: []string{"/a", strings.Repeat("x", 128<<10)}},
		`program.outcomes: "256" is no exit`:   {Command: []string{"/a"}, Outcomes: map[string]relay.Rule{"256": {Kind: relay.KindFail}}},
		`program.outcomes: "03" is no exit`:    {Command: []string{"/a"}, Outcomes: map[string]relay.Rule{"03": {Kind: relay.KindFail}}},
		`program.outcomes: "-1" is no exit`:    {Command: []string{"/a"}, Outcomes: map[string]relay.Rule{"-1": {Kind: relay.KindFail}}},
		`program.outcomes.3: "unsent" is none`: {Command: []string{"/a"}, Outcomes: map[string]relay.Rule{"3": {Kind: relay.KindUnsent}}},
		"program.outcomes.3: fail ends at":     {Command: []string{"/a"}, Outcomes: map[string]relay.Rule{"3": {Kind: relay.KindFail, Limit: 2}}},
		"program.outcomes.3: -1 attempts are":  {Command: []string{"/a"}, Outcomes: map[string]relay.Rule{"3": {Kind: relay.KindRetry, Limit: -1}}},
	} {
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("got %v, want %s", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it shows a value: %v", err)
		}
	}
}

// TestRules holds that the configuration goes before the table of exit codes.
func TestRules(t *testing.T) {
	t.Parallel()
	c := Config{Outcomes: map[string]relay.Rule{
		"0": {Kind: relay.KindUnknown}, "3": {Kind: relay.KindFail}, "10": {Kind: relay.KindRetry, Limit: 5}, "64": {Kind: relay.KindDone},
		"77": {Kind: relay.KindRetry}, "127": {Kind: relay.KindRetry}, "137": {Kind: relay.KindUnknown},
	}}
	for code, want := range map[int]relay.Outcome{
		0:   {Kind: relay.KindUnknown, Class: "other"},
		1:   {Kind: relay.KindRetry, Class: classProgram, Status: 1},
		3:   {Kind: relay.KindFail, Class: classProgram, Reason: relay.Rejected, Status: 3},
		10:  {Kind: relay.KindRetry, Class: classProgram, Limit: 5, Status: 10},
		64:  {Kind: relay.KindDone, Status: 64},
		77:  {Kind: relay.KindRetry, Class: classAuth, Status: 77},
		127: {Kind: relay.KindRetry, Class: classProgram, Status: 127},
		137: {Kind: relay.KindUnknown, Class: classProgram, Status: 137},
	} {
		got := c.of(end{code: code})
		if (got.Err == "") != (got.Kind == relay.KindDone) {
			t.Errorf("exit code %d: error %q", code, got.Err)
		}
		if got.Err = ""; got != want {
			t.Errorf("exit code %d: %+v, want %+v", code, got, want)
		}
	}
	if o := c.of(end{code: 64, told: true}); o.Kind != relay.KindUnknown {
		t.Errorf("an exit code that is done, after SIGTERM: %+v", o)
	}
}
