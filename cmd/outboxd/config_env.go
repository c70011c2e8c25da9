package main

import (
	"reflect"
	"slices"
	"strings"
)

// lookup reads the environment, as os.LookupEnv does.
type lookup func(name string) (string, bool)

// The variables of the zero-configuration start and of the database, which are more than a field each.
const (
	envConfig       = "OUTBOXD_CONFIG"
	envDatabase     = "OUTBOXD_DATABASE_URL"
	envDatabaseFile = "OUTBOXD_DATABASE_URL_FILE"
	envFallback     = "DATABASE_URL"
)

// envFields are the variables that set one field each. They win over the file.
func envFields() [][2]string {
	return [][2]string{
		{"OUTBOXD_DATABASE_SCHEMA", "database.schema"},
		{"OUTBOXD_DATABASE_POOLER", "database.pooler"},
		{"OUTBOXD_DATABASE_INSECURE", "database.insecure"},
		{"OUTBOXD_MIGRATE", "database.migrate"},
		{"OUTBOXD_INSTANCE", "instance"},
		{"OUTBOXD_RELAY_NAME", "relay.name"},
		{"OUTBOXD_RELAY_LEASE", "relay.lease"},
		{"OUTBOXD_RELAY_STOP_TIMEOUT", "relay.stop_timeout"},
		{"OUTBOXD_RELAY_MAX_ACTIVE", "relay.max_active"},
		{"OUTBOXD_LISTEN", "http.listen"},
		{"OUTBOXD_LOG_LEVEL", "log.level"},
		{"OUTBOXD_LOG_FORMAT", "log.format"},
	}
}

// envNames are all variables that are read.
func envNames() []string {
	names := []string{envConfig, envDatabase, envDatabaseFile}
	for _, pair := range slices.Concat(envFields(), envKafka(), envWebhook()) {
		names = append(names, pair[0])
	}
	return names
}

// warnMisspelt warns of variables that are nearly ours. Others that begin alike can be anybody's: Kubernetes makes some of
// a service's name.
func (l *loaded) warnMisspelt(names []string) {
	for _, name := range names {
		near := nearest(name, envNames())
		if strings.HasPrefix(name, "OUTBOXD_") && near != "" && near != name {
			l.warn(name, "this variable is not read; did you mean "+near+"?")
		}
	}
}

// overlay puts the environment over what the file said. An empty variable is one that is not set.
func (l *loaded) overlay(env lookup) {
	for _, pair := range envFields() {
		name, path := pair[0], pair[1]
		text, there := get(env, name)
		if !there {
			continue
		}
		if err := setText(fieldAt(reflect.ValueOf(&l.config).Elem(), path), text); err != nil {
			l.fail(name, "%s", err)
			continue
		}
		l.origins[path] = "environment " + name
	}
	l.overlayDatabase(env)
	l.overlayDestination(env)
}

// overlayDatabase takes the database's URL from the environment; DATABASE_URL counts only where nothing else is said.
func (l *loaded) overlayDatabase(env lookup) {
	url, hasURL := get(env, envDatabase)
	file, hasFile := get(env, envDatabaseFile)
	fallback, hasFallback := get(env, envFallback)
	db := &l.config.Database
	switch {
	case hasURL && hasFile:
		l.fail(envDatabase, "%s is set too; keep one of them", envDatabaseFile)
	case hasURL:
		db.URL, db.URLFile, db.URLEnv = Secret{url}, "", ""
		l.origins["database.url"] = "environment " + envDatabase
	case hasFile:
		db.URL, db.URLFile, db.URLEnv = Secret{}, file, ""
		l.origins["database.url_file"] = "environment " + envDatabaseFile
	case hasFallback && db.source().given() == 0:
		db.URL = Secret{fallback}
		l.origins["database.url"] = "environment " + envFallback
	}
}

func get(env lookup, name string) (string, bool) {
	text, _ := env(name)
	return text, text != ""
}

// fieldAt returns the field of a path through sections, such as relay.lease.
func fieldAt(v reflect.Value, path string) reflect.Value {
	for key := range strings.SplitSeq(path, ".") {
		v = fieldsOf(reflect.Indirect(v))[key]
	}
	return v
}
