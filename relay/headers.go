package relay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// parseHeaders reads the headers column, a JSON object of strings, sorted by name: an object has no order of its own, and
// every send of a message must carry the same bytes. The error names the header.
func parseHeaders(raw string) ([]Header, error) {
	if raw == "" || raw == "{}" {
		return nil, nil
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &entries); err != nil {
		return nil, fmt.Errorf("headers is no JSON object")
	}
	headers := make([]Header, 0, len(entries))
	for name, value := range entries {
		var text string
		if !strings.HasPrefix(string(value), `"`) || json.Unmarshal(value, &text) != nil {
			return nil, fmt.Errorf("header %q is no string", clean(name, 80))
		}
		headers = append(headers, Header{name, text})
	}
	slices.SortFunc(headers, func(a, b Header) int { return cmp.Compare(a.Name, b.Name) })
	return headers, nil
}

// ReadHeaders sets Headers to what RawHeaders says. The error names the header that is no string.
func (m *Message) ReadHeaders() (err error) {
	m.Headers, err = parseHeaders(m.RawHeaders)
	return err
}
