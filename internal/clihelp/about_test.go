package clihelp

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{name: "nothing known", want: "urlserver (devel) (no revision) (unknown Go)"},
		{name: "released", info: debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"},
				{Key: "vcs.modified", Value: "false"}}},
			want: "urlserver v1.2.3 abc go1.26.0"},
		{name: "modified", info: debug.BuildInfo{GoVersion: "go1.26.0",
			Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"},
				{Key: "vcs.revision", Value: "abc"}}},
			want: "urlserver (devel) abc+modified go1.26.0"},
	} {
		if got := versionOf("urlserver", &c.info); got != c.want {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"":          "",
		"plain":     "plain",
		`a\b "c" -`: `a\eb \(dqc\(dq \-`,
		".x":        `\&.x`,
		"'x":        `\&'x`,
	} {
		if got := roff(text); got != want {
			t.Errorf("roff(%q) = %q; want %q", text, got, want)
		}
	}
}
