package main

import (
	"strings"
	"testing"
)

// The manual page has every command and flag that is not hidden.
func TestMan(t *testing.T) {
	got := command(t, "", "man")
	got.want(t, 0, ".TH URLSERVER 1", "")
	for _, cmd := range rootCommand().Commands() {
		if name := cmd.Name(); cmd.IsAvailableCommand() && cmd.Runnable() &&
			!strings.Contains(got.out, "\n.SS \"urlserver "+name) {
			t.Errorf("the manual lacks %s", name)
		}
	}
	got.want(t, 0, "\n.B \\-\\-at \\fIaddress\\fR\n", "")
	for line := range strings.Lines(got.out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(word, ".") &&
			!strings.Contains(" .TH .SH .SS .PP .TP .B .I .br ", " "+word+" ") {
			t.Errorf("line %q is a request that nobody meant", line)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command(t, "", "completion", shell).want(t, 0, "urlserver", "")
	}
	command(t, "", "completion", "bash", "x").want(t, 2, "", "usage: urlserver completion SHELL")
	command(t, "", "completion", "tcsh").want(t, 2, "", `no completion for "tcsh"`)
	// the last line of completion: any file, no file, or some kinds of files
	for args, want := range map[string]string{
		"put": ":0", "demo": ":0", "robots": ":0", "explain": ":4", "status": ":4", "top": ":4",
		"version": ":4", "serve": "toml\n:8", "check": "toml\n:8",
	} {
		if got := command(t, "", "__complete", args, ""); !strings.HasPrefix("\n"+got.out, "\n"+want+"\n") {
			t.Errorf("what completes %s is %q; want %q", args, got.out, want)
		}
	}
	got := command(t, "", "__complete", "e")
	got.want(t, 0, "explain\t", "")
	if strings.Contains(got.out, "serve") {
		t.Errorf("what completes e is %q", got.out)
	}
}
