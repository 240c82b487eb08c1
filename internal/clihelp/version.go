package clihelp

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// scripts/dist sets version and revision. If they are "", Build uses what Go has written into the
// binary.
var version, revision string

// Version returns a command that prints version, revision and Go version of the command to which it
// is added.
func Version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and Go version",
		Args:  Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionOf(cmd.Root().Name(), Build()))
			return err
		},
	}
}

// VersionFlag gives root, which has a RunE, the flag --version, which prints what the command
// version prints. cobra's own flag needs a version template. Use of a template makes the linker
// keep each exported method of each type, which is a third of the binary.
func VersionFlag(root *cobra.Command) {
	show := root.Flags().BoolP("version", "v", false, "version for "+root.Name())
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if !*show {
			return run(cmd, args)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), versionOf(root.Name(), Build()))
		return err
	}
}

// Build returns what is known of this binary.
func Build() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if version != "" {
		info.Main.Version = version
		info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: revision}}
	}
	return info
}

// versionOf returns "NAME VERSION REVISION GO".
func versionOf(name string, info *debug.BuildInfo) string {
	version, revision, dirty, golang := "(devel)", "(no revision)", "", "(unknown Go)"
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	if info.GoVersion != "" {
		golang = info.GoVersion
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+modified"
		}
	}
	return fmt.Sprintf("%s %s %s%s %s", name, version, revision, dirty, golang)
}
