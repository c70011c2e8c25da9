package webhook

import "testing"

func TestLookup(t *testing.T) {
	t.Parallel()
	const document = ` {"id": 12345678901234567890, "price": 1.10e2, "name": "K\u00f6ln \"x\"", "ok": true, "none": null, "": "empty",
		"a/b": 1, "m~n": 2, "~1": 3, "list": [ {"id": "first"}, [10, 20] ], "part": { "x": [1] }, "twice": 1, "twice": 2} `
	for pointer, want := range map[string]string{
		"/id": "12345678901234567890", "/price": "1.10e2", "/name": `Köln "x"`, "/ok": "true", "/none": "", "/": "empty",
		"/a~1b": "1", "/m~0n": "2", "/~01": "3", "/list/0/id": "first", "/list/1/1": "20", "/part": `{ "x": [1] }`, "/twice": "2",
	} {
		if got, found := lookup([]byte(document), pointer); got != want || !found {
			t.Errorf("%s: %q, %t, want %q", pointer, got, found, want)
		}
	}
	for _, pointer := range []string{
		"/ID", "/missing", "/id/0", "/name/0", "/list/2", "/list/-1", "/list/-", "/list/00", "/list/+0", "/list/x", "/none/x", "/part/",
	} {
		if got, found := lookup([]byte(document), pointer); found {
			t.Errorf("%s: found %q", pointer, got)
		}
	}
	for _, document := range []string{"", "no JSON", `{"id":1`, "\x1f\x8b", "7"} {
		if got, found := lookup([]byte(document), "/id"); found {
			t.Errorf("%q: found %q", document, got)
		}
	}
}
