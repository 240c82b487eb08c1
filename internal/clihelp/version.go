package clihelp

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and revision are set by scripts/dist; "": what Go has written into the binary counts.
var version, revision string

// Version is a command that prints version, revision and Go version of the command that it is added to.
func Version(takes Takes) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and Go version",
		Args:  takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionOf(cmd.Root().Name(), Build()))
			return err
		},
	}
}

// VersionFlag has the command print the same for --version.
func VersionFlag(root *cobra.Command) {
	root.Version = versionOf(root.Name(), Build())
	root.SetVersionTemplate("{{.Version}}\n")
}

// Build is what is known of this binary.
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

// versionOf is "NAME VERSION REVISION GO".
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
