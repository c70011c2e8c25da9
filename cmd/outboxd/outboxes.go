package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// againAfter is how long an outbox that does not work rests, where it is one of several.
const againAfter = 10 * time.Second

// outboxes reads the configurations of run. Each file is of an outbox of its own, as if it were the only one; all mistakes of
// all files are one error.
func (p *program) outboxes() ([]*daemon, error) {
	if len(p.configFiles) < 2 {
		l, err := p.load()
		if err != nil {
			return nil, err
		}
		return []*daemon{p.daemon("", l)}, nil
	}
	for _, name := range []string{envDatabase, envDatabaseFile, "OUTBOXD_DATABASE_SCHEMA"} {
		if _, there := get(p.env, name); there {
			return nil, failf(exitConfiguration, "%s would count for every file; unset it, and say it in each of them, as with database.url_file", name)
		}
	}
	var list []*loaded
	var errs []error
	for _, file := range p.configFiles {
		l, err := p.loadFile(file)
		list, errs = append(list, l), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := p.apart(list); err != nil {
		return nil, failf(exitConfiguration, "%w", err)
	}
	var all []*daemon
	for _, l := range list {
		all = append(all, p.daemon(outboxName(l.file), l))
	}
	return all, nil
}

// daemon is an outbox that is not open yet.
func (p *program) daemon(name string, l *loaded) *daemon {
	d := &daemon{program: p, file: l.file, name: name, loaded: l, log: newLog(p.stderr, l.config.Log)}
	if name != "" {
		d.log = d.log.With("outbox", name)
	}
	for _, words := range l.warnings {
		d.log.Warn("configuration", "warning", words)
	}
	return d
}

// outboxName tells one of several outboxes from the others: the file's name.
func outboxName(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// apart refuses files that would get into each other's way.
func (p *program) apart(list []*loaded) error {
	names, tables := map[string]string{}, map[string]string{}
	for i, l := range list {
		name := outboxName(l.file)
		if other, there := names[name]; there {
			return fmt.Errorf("%s and %s have one name, %s, for logs and metrics; rename one of the files", other, l.file, name)
		}
		names[name] = l.file
		if listen := list[0].config.HTTP.Listen; i > 0 && l.set("http.listen") && l.config.HTTP.Listen != listen {
			return fmt.Errorf("%s: http.listen: there is one address for all outboxes, that of %s; leave it out here", l.file, list[0].file)
		}
		o, err := l.databaseOptions(p.env)
		if err != nil {
			continue // opening it says so
		}
		table := o.URL + " " + o.Schema
		if other, there := tables[table]; there {
			return fmt.Errorf("%s and %s name the same database and schema: an outbox needs one file", other, l.file)
		}
		tables[table] = l.file
	}
	return nil
}

// keep runs an outbox. One that is alone ends with its error. Beside others it is tried again after a while, since nobody
// restarts the process for it.
func (d *daemon) keep(ctx context.Context) error {
	err := d.run(ctx)
	for d.name != "" && !d.once && err != nil && ctx.Err() == nil {
		d.rest(err)
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return nil
		}
		if err = d.open(); err == nil {
			err = d.run(ctx)
		}
	}
	if err != nil && d.name != "" {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	return err
}

// rest says that the outbox does not work, and why.
func (d *daemon) rest(err error) {
	words := inALine(err)
	d.health.waiting.Store(&words)
	d.health.running.Store(nil)
	d.mu.Lock()
	d.relay = nil
	d.mu.Unlock()
	d.log.Error("this outbox does not work, and is tried again", "in", againAfter, "err", words)
}
