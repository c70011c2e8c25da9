package kafka

import (
	"fmt"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

// maxTopicLength is Kafka's own, as are the characters that isTopic admits.
const maxTopicLength = 249

// topic is a parsed template of topic names.
type topic struct{ parts []part }

// part is a piece of a template: text, or what a message puts in its place.
type part struct {
	text string
	of   func(*relay.Message) string // nil: text
}

// parseTopic reads a template. Only a template with no placeholder is known to name a legal topic then.
func parseTopic(template string) (topic, error) {
	var t topic
	rest := template
	for rest != "" {
		text, after, found := strings.Cut(rest, "{")
		if text != "" {
			t.parts = append(t.parts, part{text: text})
		}
		if !isTopicText(text) {
			return topic{}, fmt.Errorf("%q has other characters than letters, digits, dot, underscore and hyphen", template)
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		switch {
		case closed && name == "routing_key":
			t.parts = append(t.parts, part{of: func(m *relay.Message) string { return m.RoutingKey }})
		case closed && name == "type":
			t.parts = append(t.parts, part{of: func(m *relay.Message) string { return m.Type }})
		default:
			return topic{}, fmt.Errorf("%q has a placeholder that is neither {routing_key} nor {type}", template)
		}
		rest = tail
	}
	if len(t.parts) == 1 && t.parts[0].of == nil && !isTopic(template) {
		return topic{}, fmt.Errorf("%q is no legal name of a topic", template)
	}
	return t, nil
}

// name is the topic of a message; ok is false where Kafka takes no topic of that name.
func (t topic) name(m *relay.Message) (name string, ok bool) {
	for _, p := range t.parts {
		if p.of == nil {
			name += p.text
		} else {
			name += p.of(m)
		}
	}
	return name, isTopic(name)
}

// isTopic tells whether Kafka takes a topic of that name: 1 to 249 of [a-zA-Z0-9._-], and neither "." nor "..".
func isTopic(name string) bool {
	return name != "" && len(name) <= maxTopicLength && name != "." && name != ".." && isTopicText(name)
}

func isTopicText(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
