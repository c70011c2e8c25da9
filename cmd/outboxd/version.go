package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what this binary is made of.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// builtFrom reads what the Go tool wrote into the binary; a build from a working copy is called devel.
func builtFrom() build {
	b := build{Version: "devel", Commit: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (p *program) versionCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Args: noArgs(),
		RunE: func(*cobra.Command, []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return rows(p.stdout, out, []build{builtFrom()})
		},
	}
	out.flag(cmd)
	return cmd
}
