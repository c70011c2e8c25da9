package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// reload reads the outbox's configuration anew and goes on by it. One that has a mistake, or that changes what only a
// restart can change, is refused as a whole.
func (d *daemon) reload() {
	next, err := d.program.loadFile(d.file)
	if err == nil {
		err = d.take(next)
	}
	d.metrics.reloaded.tell(err)
	if err != nil {
		d.log.Error("configuration not reloaded: nothing has changed", "err", inALine(err))
		return
	}
	for _, words := range next.warnings {
		d.log.Warn("configuration", "warning", words)
	}
	d.log.Info("configuration reloaded", "config_hash", next.config.hash())
}

// take puts another configuration in force.
func (d *daemon) take(next *loaded) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := next.wantsWork(); err != nil {
		return err
	}
	if keys := differences("", fixed(d.loaded.config), fixed(next.config)); len(keys) > 0 {
		return fmt.Errorf("a change of %s wants a restart", strings.Join(keys, ", "))
	}
	if d.relay != nil {
		if err := d.relay.Reload(next.plan()); err != nil {
			return err
		}
	}
	d.loaded = next
	d.metrics.start(next.config)
	return nil
}

// fixed is a configuration without what a reload can change: routes, and the limits of destinations. A window of dedupe may
// change; whether there is one decides how a sink is made.
func fixed(c config) config {
	c.Routes, c.Destinations = nil, maps.Clone(c.Destinations)
	for name, d := range c.Destinations {
		d.Width, d.Rate, d.Timeout, d.Breaker = 0, "", 0, breakerConfig{}
		if d.Webhook != nil && d.Webhook.Dedupe != never {
			w := *d.Webhook
			w.Dedupe, d.Webhook = "", &w
		}
		if d.Program != nil && d.Program.Dedupe != memory(never) {
			p := *d.Program
			p.Dedupe, d.Program = "", &p
		}
		c.Destinations[name] = d
	}
	return c
}

// differences are the keys whose values differ between two configurations, in the order of the file's sections.
func differences(path string, a, b any) []string {
	return changed(path, reflect.ValueOf(a), reflect.ValueOf(b))
}

func changed(path string, a, b reflect.Value) (keys []string) {
	switch {
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return changed(path, a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct && !oneValue(a.Type()):
		for i := range a.NumField() {
			here := path
			if key, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ","); key != "" {
				here = join(path, key)
			}
			keys = append(keys, changed(here, a.Field(i), b.Field(i))...)
		}
		return keys
	case a.Kind() == reflect.Map:
		names := stringKeys(a.Interface())
		maps.Copy(names, stringKeys(b.Interface()))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			was, is := a.MapIndex(reflect.ValueOf(name)), b.MapIndex(reflect.ValueOf(name))
			if !was.IsValid() || !is.IsValid() {
				keys = append(keys, join(path, name))
				continue
			}
			keys = append(keys, changed(join(path, name), was, is)...)
		}
		return keys
	case !reflect.DeepEqual(a.Interface(), b.Interface()):
		return []string{path}
	}
	return nil
}

// inALine is an error for a log: of the mistakes of a file, their places and words.
func inALine(err error) string {
	mistakes, ok := errors.AsType[*configError](err)
	if !ok {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	var words []string
	for _, p := range mistakes.problems {
		text := p.text
		if p.path != "" {
			text = p.path + ": " + text
		}
		if p.line > 0 && mistakes.file != "" {
			text = fmt.Sprintf("%s:%d: %s", mistakes.file, p.line, text)
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}
