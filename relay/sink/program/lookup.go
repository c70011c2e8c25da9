package program

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// place is where the program is: the path that was given, or the first of its name in Path, which is looked up once it is
// there and then not again, so that nothing can take its place meanwhile. Safe for concurrent use.
type place struct {
	name string

	mu    sync.Mutex
	found string
}

// path tells where an executable program is. The error says why there is none.
func (p *place) path() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == "" {
		found, err := lookUp(p.name)
		if err != nil {
			return "", err
		}
		p.found = found
	}
	_, err := executable(p.found)
	return p.found, err
}

func lookUp(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return executable(name)
	}
	for dir := range strings.SplitSeq(Path, ":") {
		if found, err := executable(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", errors.New(name + " is in none of " + Path + "; install it there, or name it by its absolute path")
}

// executable tells whether we may execute a file.
func executable(path string) (string, error) {
	_, err := exec.LookPath(path)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New(path + " does not exist; install it, or correct command")
	case errors.Is(err, fs.ErrPermission):
		return "", errors.New(path + " is not executable by the relay's user; set its mode")
	}
	return "", errors.New(path + " cannot be executed: " + reason(err))
}

// directory tells whether a program can be started in a directory.
func directory(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errors.New("dir " + path + " cannot be entered: " + reason(err))
	case !info.IsDir():
		return errors.New("dir " + path + " is no directory")
	}
	return nil
}

// reason is an error of the system without the path and call before it.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
