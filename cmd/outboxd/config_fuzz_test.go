package main

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzDecode holds that no text makes the decoder panic, and that it either fills a configuration or says why not.
func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/config/*/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := defaultConfig()
		l := &loaded{config: c, decoder: decode(text, &c), origins: map[string]string{}}
		l.config, l.problems = c, l.decoder.problems
		l.check()
		_ = (&configError{file: "f", problems: l.problems}).Error()
	})
}
