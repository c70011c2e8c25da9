package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// decoder walks the tree that goccy's parser made of a file and fills a struct by its yaml tags. Decoding by hand costs
// a page and gives what yaml.Unmarshal cannot: all mistakes at once, each with its place, and the place of every key for
// the checks that follow. What the file does not name keeps its value, so an empty file changes nothing.
type decoder struct {
	problems problems
	at       map[string]place // by path, such as routes[0].match
	broken   map[string]bool  // paths whose value could not be read, so that no check looks at it again
}

// worded is a section that can also be written as one word: `emit: charged` is `emit: {type: charged}`. word is where it goes.
type worded interface{ word() *string }

func newDecoder() *decoder { return &decoder{at: map[string]place{}, broken: map[string]bool{}} }

// decode reads text into target, a pointer to a struct.
func decode(text []byte, target any) *decoder {
	d := newDecoder()
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.problems = append(d.problems, syntaxProblem(err))
		return d
	}
	for i, doc := range file.Docs {
		if i > 0 && doc.Body != nil {
			d.fail(placeOf(doc.Body), "", "a second document in one file; keep one")
			break
		}
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			d.value("", place{line: 1, column: 1}, doc.Body, reflect.ValueOf(target).Elem())
		}
	}
	return d
}

func (d *decoder) fail(at place, path, format string, args ...any) {
	d.problems = append(d.problems, problem{place: at, path: path, text: fmt.Sprintf(format, args...)})
}

// value decodes one node. An empty value (`stdout:`) of a section means a section without keys, of anything else nothing.
func (d *decoder) value(path string, at place, n ast.Node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	word, isWorded := reflect.TypeAssert[worded](v.Addr())
	switch n.Type() {
	case ast.NullType:
		if isWorded {
			d.broken[path] = true
			d.fail(at, path, "has no value; write one, or take the key out")
		}
		return
	case ast.AnchorType, ast.AliasType, ast.TagType:
		d.fail(at, path, "anchors, aliases and tags of YAML are not read here; write the value itself")
		return
	}
	switch {
	case isWorded && n.Type() != ast.MappingType:
		d.scalar(path, at, n, reflect.ValueOf(word.word()).Elem())
	case v.Type() == reflect.TypeFor[Secret]():
		d.scalar(path, at, n, v)
	case v.Kind() == reflect.Struct:
		d.section(path, at, n, v)
	case v.Kind() == reflect.Map:
		d.mapping(path, at, n, v)
	case v.Kind() == reflect.Slice:
		d.list(path, at, n, v)
	default:
		d.scalar(path, at, n, v)
	}
}

// section decodes the keys that a struct knows.
func (d *decoder) section(path string, at place, n ast.Node, v reflect.Value) {
	fields := fieldsOf(v)
	for _, e := range d.entries(path, at, n) {
		field, known := fields[e.key]
		if !known {
			d.fail(e.place, path, "%s", unknownKey(e, keysOf(fields)))
			continue
		}
		d.value(join(path, e.key), e.place, e.node, field)
	}
}

// mapping decodes a map from names to sections. An element starts empty, not from a default.
func (d *decoder) mapping(path string, at place, n ast.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.entries(path, at, n) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(join(path, e.key), e.place, e.node, element)
		v.SetMapIndex(reflect.ValueOf(e.key), element)
	}
}

func (d *decoder) list(path string, at place, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(at, path, "wants a list: [a, b]")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		here := fmt.Sprintf("%s[%d]", path, i)
		d.at[here] = placeOf(item)
		d.value(here, d.at[here], item, v.Index(i))
	}
}

// entry is one key of a mapping with its value.
type entry struct {
	key string
	place
	node ast.Node
}

// entries lists the keys of a mapping, each once, and notes their places.
func (d *decoder) entries(path string, at place, n ast.Node) []entry {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(at, path, "wants keys and values below it")
		return nil
	}
	var out []entry
	first := map[string]int{}
	for _, kv := range m.Values {
		tok := kv.Key.GetToken()
		e := entry{key: tok.Value, node: kv.Value, place: placeOf(kv.Key)}
		// A key without a value can be a password that slipped into braces: only what has a value is shown.
		if kv.Value.Type() != ast.NullType && plainName(e.key) {
			e.place.key = e.key
		}
		if kv.Key.Type() == ast.MergeKeyType || kv.Key.Type() == ast.MappingKeyType {
			d.fail(e.place, path, "only plain keys are read here")
			continue
		}
		if line, double := first[e.key]; double {
			d.fail(e.place, join(path, e.place.key), "the key is here twice, first in line %d; keep one", line)
			continue
		}
		first[e.key] = e.line
		d.at[join(path, e.key)] = e.place
		out = append(out, e)
	}
	return out
}

// fieldsOf returns the fields of a struct by key; those of an inlined struct are its own.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		switch key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); key {
		case "":
			maps.Copy(out, fieldsOf(v.Field(i)))
		case "-": // no key of the file
		default:
			out[key] = v.Field(i)
		}
	}
	return out
}

// join makes a key's path for messages and for decoder.at.
func join(path, key string) string {
	if !plainName(key) {
		key = "?"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func placeOf(n ast.Node) place {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key // the token of a mapping is its first colon
	}
	pos := n.GetToken().Position
	return place{line: pos.Line, column: pos.Column}
}

// syntaxProblem takes place and words out of goccy's error. Its own excerpt can hold a password and is left out, and so
// are quoted parts of its words, which come from the file.
func syntaxProblem(err error) problem {
	p := problem{text: "this is no YAML"}
	if known, ok := errors.AsType[yaml.Error](err); ok {
		words, _, _ := strings.Cut(known.GetMessage(), `"`)
		p.text += ": " + strings.TrimRight(words, ": ")
		if tok := known.GetToken(); tok != nil && tok.Position != nil {
			p.place = place{line: tok.Position.Line, column: tok.Position.Column}
		}
	}
	return p
}
