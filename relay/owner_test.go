package relay

import "testing"

// TestOwner_Doubted: an answer that was asked for before a call failed does not count, since it may be that of the database
// before.
func TestOwner_Doubted(t *testing.T) {
	t.Parallel()
	var o owner
	before := o.ask()
	o.doubt()
	if _, counts := o.set("", before); counts || o.serves() {
		t.Error("an answer from before the doubt counts")
	}
	if _, counts := o.set("", o.ask()); !counts || !o.serves() {
		t.Error("an answer from after the doubt does not count")
	}
}
