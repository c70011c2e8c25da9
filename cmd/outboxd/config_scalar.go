package main

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar decodes text, numbers, durations and booleans. YAML's own types count: a number is no text.
func (d *decoder) scalar(path string, at place, n ast.Node, v reflect.Value) {
	text, kind := scalarText(n)
	wants := ""
	switch {
	case v.Type() == reflect.TypeFor[time.Duration](), v.Kind() == reflect.String, v.Kind() == reflect.Struct:
		if kind != token.StringType {
			wants = wantsOf(v)
		}
	case v.Kind() == reflect.Bool && kind != token.BoolType, v.Kind() == reflect.Int && kind != token.IntegerType:
		wants = wantsOf(v)
	}
	if wants == "" && setText(v, text) != nil {
		wants = wantsOf(v)
	}
	if wants != "" {
		d.broken[path] = true
		d.fail(at, path, "wants %s", wants)
	}
}

// scalarText returns a scalar's text and its YAML type; MappingStartType stands for all that is no scalar.
func scalarText(n ast.Node) (string, token.Type) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, token.StringType
	case *ast.LiteralNode:
		return n.Value.Value, token.StringType
	case *ast.IntegerNode:
		return n.Token.Value, token.IntegerType
	case *ast.BoolNode:
		return n.Token.Value, token.BoolType
	}
	return "", token.MappingStartType
}

// durationWords is what a value of time has to be.
const durationWords = "a duration with its unit, such as 500ms, 30s or 5m"

// setText sets a scalar field from text, as file and environment give it, and a list from what stands between commas, as
// the environment does. Its error says what is wanted, never the text.
func setText(v reflect.Value, text string) error {
	switch {
	case v.Type() == reflect.TypeFor[Secret]():
		v.Set(reflect.ValueOf(Secret{text}))
	case v.Type() == reflect.TypeFor[time.Duration]():
		span, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("wants " + wantsOf(v))
		}
		v.SetInt(int64(span))
	case v.Kind() == reflect.Int:
		number, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("wants " + wantsOf(v))
		}
		v.SetInt(int64(number))
	case v.Kind() == reflect.Bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("wants " + wantsOf(v))
		}
		v.SetBool(yes)
	case v.Kind() == reflect.Slice:
		parts := splitList(text)
		v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))
		for i, part := range parts {
			if err := setText(v.Index(i), part); err != nil {
				return err
			}
		}
	default:
		v.SetString(text)
	}
	return nil
}

func splitList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func wantsOf(v reflect.Value) string {
	if text, ok := reflect.TypeAssert[interface{ wants() string }](v); ok {
		return text.wants()
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return durationWords
	case v.Kind() == reflect.Int:
		return "a whole number"
	case v.Kind() == reflect.Bool:
		return "true or false"
	}
	return "text; put it in quotes"
}
