package postgres

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lib/pq"
)

// errURL is all that is said of a URL that is not understood: a part of it may be a part of the password.
var errURL = errors.New("the database URL is not understood: write postgres://user:password@host:5432/database, and in the " +
	"password %40 for @, %23 for #, %2F for /, %3F for ?, %25 for %, %20 for a blank")

// parseURL reads the URL of a database, with what is missing from lib/pq's PG* variables. The errors of net/url and lib/pq
// quote what they read, so they go no further.
func parseURL(text string, insecure bool) (pq.Config, error) {
	u, err := url.Parse(text)
	if err != nil {
		return pq.Config{}, errURL
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return pq.Config{}, errURL
	}
	// A raw # / or ? in a password ends the host's part early: what follows the last @ then stands where none may be.
	if strings.Contains(text, "#") || u.Opaque != "" || strings.Contains(u.EscapedPath()+u.RawQuery, "@") {
		return pq.Config{}, errURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return pq.Config{}, errURL
	}
	config, err := pq.NewConfig(text)
	if err != nil {
		return pq.Config{}, errURL
	}
	if config.Runtime == nil {
		config.Runtime = map[string]string{}
	}
	if !query.Has("sslmode") && !local(config) {
		config.SSLMode = pq.SSLModeVerifyFull
		if insecure {
			config.SSLMode = pq.SSLModePrefer
		}
	}
	if !query.Has("sslmode") && local(config) {
		config.SSLMode = pq.SSLModeDisable
	}
	return config, nil
}

// local tells whether all hosts are this machine, where no TLS is needed.
func local(config pq.Config) bool {
	loopback := func(host string) bool {
		ip := net.ParseIP(strings.Trim(host, "[]"))
		return host == "" || host == "localhost" || filepath.IsAbs(host) || ip != nil && ip.IsLoopback()
	}
	if config.Hostaddr.IsValid() && !config.Hostaddr.IsLoopback() || !config.Hostaddr.IsValid() && !loopback(config.Host) {
		return false
	}
	return !slices.ContainsFunc(config.Multi, func(m pq.ConfigMultihost) bool {
		return m.Hostaddr.IsValid() && !m.Hostaddr.IsLoopback() || !m.Hostaddr.IsValid() && !loopback(m.Host)
	})
}
