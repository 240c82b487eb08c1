package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and revision are set by scripts/dist; "": what Go has written into the binary counts.
var version, revision string

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and Go version",
		Args:  takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionOf(buildInfo()))
			return err
		},
	}
}

// buildInfo is what is known of this binary.
func buildInfo() *debug.BuildInfo {
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

// versionOf is "urlserver VERSION REVISION GO".
func versionOf(info *debug.BuildInfo) string {
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
	return fmt.Sprintf("urlserver %s %s%s %s", version, revision, dirty, golang)
}
