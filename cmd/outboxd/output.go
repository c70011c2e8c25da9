package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/outboxd/outboxd/dialect"
)

// output is the format that -o asks for.
type output struct{ format string }

func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "table", "`format`: table, json or jsonl")
}

func (o *output) check() error {
	switch o.format {
	case "table", "json", "jsonl":
		return nil
	}
	return usagef("-o wants table, json or jsonl")
}

// rows prints a list of structs by their json tags: a table, one JSON array, or a JSON object a line. No row is an empty
// table with its heading, [] or nothing.
func rows[T any](w io.Writer, o output, list []T) error {
	switch o.format {
	case "json":
		if list == nil {
			list = []T{}
		}
		return printJSON(w, list, "  ")
	case "jsonl":
		for _, row := range list {
			if err := printJSON(w, row, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return printTable(w, list)
}

func printJSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

func printTable[T any](w io.Writer, list []T) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	kind := reflect.TypeFor[T]()
	var heading []string
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		heading = append(heading, strings.ToUpper(name))
	}
	fmt.Fprintln(table, strings.Join(heading, "\t"))
	for _, row := range list {
		v := reflect.ValueOf(row)
		cells := make([]string, 0, v.NumField())
		for _, field := range v.Fields() {
			cells = append(cells, cell(field))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// timeForm is how every table shows a time, and what --since and --until take.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// moves tells of a character with which a row could move the cursor, end a line or turn it around.
func moves(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// cell is a value in one line of a table; control characters from a row cannot move the cursor.
func cell(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		v = v.Elem()
	}
	if at, ok := reflect.TypeAssert[dialect.Time](v); ok {
		v = reflect.ValueOf(at.Time)
	}
	if at, ok := reflect.TypeAssert[time.Time](v); ok {
		return at.UTC().Format(timeForm)
	}
	text := strings.Map(func(r rune) rune {
		if moves(r) {
			return ' '
		}
		return r
	}, fmt.Sprint(v.Interface()))
	if text == "" {
		return "-"
	}
	return text
}
