package program

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/outboxd/outboxd/relay"
)

// Path is the PATH that every program has, and that a name without a slash is looked up in. The relay's own counts for
// nothing.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// The variables of a message; docs/configuration.md has them.
const (
	prefix        = "OUTBOX_"
	varID         = prefix + "ID" // the wire key
	varType       = prefix + "TYPE"
	varAggregate  = prefix + "AGGREGATE_TYPE" // unset where it is NULL
	varKey        = prefix + "AGGREGATE_ID"   // unset where it is NULL
	varVersion    = prefix + "SCHEMA_VERSION"
	varAttempt    = prefix + "ATTEMPT"
	varTrace      = "TRACEPARENT" // unset where it is NULL or not valid
	maxValueBytes = maxStringBytes / 2

	minSecretBytes = 8
)

// IsOfMessage tells whether a variable is one of those that say what a message is about, or may become one.
func IsOfMessage(name string) bool { return strings.HasPrefix(name, prefix) || name == varTrace }

// environment makes all that a program sees: PATH, the variables of the configuration, and the message's. The headers of a
// row are not in it, since their names could be anything. An error says that no program can get the message.
func (c Config) environment(m *relay.Message) ([]string, error) {
	env := []string{"PATH=" + Path}
	if _, own := c.Env["PATH"]; own {
		env = nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	var trace *string
	if hop := m.Hop(); hop != "" {
		trace = &hop
	}
	for _, v := range []struct {
		name   string
		value  *string
		column string
	}{
		{varID, &m.WireKey, "id"},
		{varType, &m.Type, "type"},
		{varAggregate, m.AggregateType, "aggregatetype"},
		{varKey, m.AggregateID, "aggregateid"},
		{varVersion, new(strconv.Itoa(m.SchemaVersion)), "schema_version"},
		{varAttempt, new(strconv.Itoa(m.Attempt())), "attempts"},
		{varTrace, trace, "traceparent"},
	} {
		switch {
		case v.value == nil:
			continue
		case strings.Contains(*v.value, "\x00"):
			return nil, fmt.Errorf("%s has a NUL in it, which no variable can have", v.column)
		case len(*v.value) > maxValueBytes:
			return nil, fmt.Errorf("%s is longer than the 64 KiB that a variable can have", v.column)
		}
		env = append(env, v.name+"="+*v.value)
	}
	return env, nil
}

// secretsOf are the values that a program gets beside its message: it may write what it was given. Of short ones, such as
// live, most are plain words, and results would be falsified by masking them.
func secretsOf(env map[string]string) *relay.Secrets {
	s := &relay.Secrets{}
	for _, value := range env {
		if len(value) >= minSecretBytes {
			s.Add(value)
		}
	}
	return s
}
