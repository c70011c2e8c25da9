//go:build !linux

package main

import "github.com/spf13/cobra"

// ownCommands are none here: there is no guard on this system.
func (*program) ownCommands() []*cobra.Command { return nil }
