package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// checkPointer says what is wrong with a JSON pointer. RFC 6901, 3.
func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") {
		return errors.New(`wants a JSON pointer, which begins with "/", such as /id`)
	}
	if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(pointer), "~") {
		return errors.New("has a ~ that is neither ~0 (for ~) nor ~1 (for /)")
	}
	return nil
}

// lookup follows a JSON pointer through a document. A string gives its text, null nothing, and all else the bytes that
// stand there, so that a large number keeps its digits.
func lookup(document []byte, pointer string) (_ string, found bool) {
	at := json.RawMessage(document)
	for part := range strings.SplitSeq(pointer[1:], "/") {
		at, found = step(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		if !found {
			return "", false
		}
	}
	at = bytes.TrimSpace(at)
	if bytes.Equal(at, []byte("null")) {
		return "", true
	}
	var text string
	if json.Unmarshal(at, &text) == nil {
		return text, true
	}
	return string(at), true
}

// step goes from a value to the member or element of that name. RFC 6901, 4: an index has no zeros in front.
func step(from json.RawMessage, name string) (_ json.RawMessage, found bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(from, &members) == nil {
		value, found := members[name]
		return value, found
	}
	var elements []json.RawMessage
	index, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(index) != name || json.Unmarshal(from, &elements) != nil || index < 0 || index >= len(elements) {
		return nil, false
	}
	return elements[index], true
}
