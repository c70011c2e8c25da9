package sqlite

import (
	"errors"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

var (
	errURL = errors.New("the database URL is not understood: write sqlite:PATH or sqlite:///ABSOLUTE/PATH, and in the path " +
		"%25 for %, %3F for ?, %23 for #")
	errSettings = errors.New("the database URL has settings behind its path: take off what begins with ? or #, outboxd " +
		"sets what it needs itself, and write %3F or %23 for one in the file's name")
	errMemory = errors.New("the database URL names no file, and a database in memory belongs to one process alone: write sqlite:PATH")
	errHost   = errors.New("the database URL names a host, and SQLite works on this machine's files: write sqlite:PATH, or " +
		"sqlite:///ABSOLUTE/PATH with three slashes")
)

// parseURL gives the absolute path of the file that a URL names.
func parseURL(text string) (string, error) {
	scheme, rest, found := strings.Cut(text, ":")
	if !found || scheme != "sqlite" && scheme != "sqlite3" && scheme != "file" {
		return "", errURL
	}
	if strings.ContainsAny(rest, "?#") {
		return "", errSettings
	}
	path, err := url.PathUnescape(rest)
	if err != nil || strings.ContainsRune(path, 0) {
		return "", errURL
	}
	if after, slashes := strings.CutPrefix(path, "//"); slashes {
		path = strings.TrimPrefix(after, "localhost")
		if !strings.HasPrefix(path, "/") {
			return "", errHost
		}
	}
	if path == "" || path == "/" || strings.HasPrefix(path, ":memory:") {
		return "", errMemory
	}
	if runtime.GOOS == "windows" && filepath.VolumeName(strings.TrimPrefix(path, "/")) != "" {
		path = strings.TrimPrefix(path, "/") // file:///C:/data/shop.db
	}
	return filepath.Abs(path)
}
