package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

func (p *program) configCommand() *cobra.Command {
	var help strings.Builder
	help.WriteString("The configuration is one YAML file, " + envConfig + " or -c. These variables win over it:\n")
	list := func(pairs ...[2]string) {
		for _, pair := range pairs {
			fmt.Fprintf(&help, "  %-28s %s\n", pair[0], pair[1])
		}
	}
	list(append(envFields(), [2]string{envDatabase, "database.url"}, [2]string{envDatabaseFile, "database.url_file"})...)
	help.WriteString("Where the file has no destinations and no routes, these make one of each, to Kafka or to a webhook:\n")
	list(append(envKafka(), envWebhook()...)...)
	help.WriteString(envFallback + " counts where no other database is given.")
	cmd := group("config", "Check and show the configuration", help.String())
	cmd.AddCommand(p.configValidateCommand(), p.configShowCommand())
	return cmd
}

func (p *program) configValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate", Short: "Check the configuration: exit 0, or 3 with every mistake", Args: noArgs(),
		RunE: func(*cobra.Command, []string) error {
			l, err := p.load()
			if err == nil {
				err = tryBuild(l, p.env)
			}
			for _, words := range l.warnings {
				fmt.Fprintln(p.stderr, "warning: "+words)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(p.stderr, "the configuration is good")
			return nil
		},
	}
}

// tryBuild makes all that run would make, and closes it: what only the making finds is a mistake too.
func tryBuild(l *loaded, env lookup) error {
	config, err := buildRelay(l, parts{env: env, out: io.Discard, log: slog.New(slog.DiscardHandler)})
	if err := errors.Join(err, closeSinks(config)); err != nil {
		return err
	}
	if l.checkDatabase(env); len(l.problems) > 0 {
		return &configError{file: l.file, problems: l.problems}
	}
	return nil
}

// setting is a value of the resolved configuration.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (p *program) configShowCommand() *cobra.Command {
	var (
		out      output
		resolved bool
	)
	cmd := &cobra.Command{
		Use: "show", Short: "Print the configuration in force as YAML, secrets masked", Args: noArgs(),
		RunE: func(*cobra.Command, []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if out.format != "table" && !resolved {
				return usagef("-o goes with --resolved; without it, config show prints YAML")
			}
			l, err := p.load()
			if err != nil {
				return err
			}
			if resolved {
				return rows(p.stdout, out, settings(l, "", reflect.ValueOf(l.config)))
			}
			text, err := yaml.Marshal(l.config)
			if err != nil {
				return err
			}
			_, err = p.stdout.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&resolved, "resolved", false, "print each value with where it came from")
	out.flag(cmd)
	return cmd
}

// settings lists the values that are set, in the order of the file's sections.
func settings(l *loaded, path string, v reflect.Value) []setting {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return settings(l, path, v.Elem())
	case v.Kind() == reflect.Struct && !oneValue(v.Type()):
		return sectionSettings(l, path, v)
	case v.Kind() == reflect.Map:
		var out []setting
		named := v.Interface()
		for _, name := range slices.Sorted(maps.Keys(stringKeys(named))) {
			out = append(out, settings(l, join(path, name), v.MapIndex(reflect.ValueOf(name)))...)
		}
		return out
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		var out []setting
		for i := range v.Len() {
			out = append(out, settings(l, fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
		return out
	case v.IsZero():
		return nil
	}
	return []setting{{path, shown(v), l.origin(path)}}
}

// oneValue tells of a struct that is one value to those who read it.
func oneValue(t reflect.Type) bool {
	return t == reflect.TypeFor[Secret]() || reflect.PointerTo(t).Implements(reflect.TypeFor[worded]())
}

func sectionSettings(l *loaded, path string, v reflect.Value) []setting {
	var out []setting
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key == "" { // an inlined struct
			out = append(out, sectionSettings(l, path, v.Field(i))...)
			continue
		}
		out = append(out, settings(l, join(path, key), v.Field(i))...)
	}
	return out
}

func stringKeys(m any) map[string]bool {
	out := map[string]bool{}
	for _, key := range reflect.ValueOf(m).MapKeys() {
		out[key.String()] = true
	}
	return out
}

func shown(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return short(value)
	case []string:
		return strings.Join(value, ",")
	default:
		return fmt.Sprint(value)
	}
}
