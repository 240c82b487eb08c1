package main

import (
	"strings"
	"syscall"
	"testing"
)

func TestUsage(t *testing.T) {
	good := settings(t, "")
	for _, c := range []struct {
		name string
		args []string
		code int
		out  string
		errs string
	}{
		{name: "no command", code: 2, errs: "urlserver --help"},
		{name: "unknown command", args: []string{"sevre"}, code: 2, errs: `unknown command "sevre"`},
		{name: "unknown flag", args: []string{"serve", "--x"}, code: 2,
			errs: "unknown flag: --x; try urlserver serve --help"},
		{name: "help", args: []string{"--help"}, out: "Exit status: 0 done, 1 failed, 2 wrong usage."},
		{name: "help of a command", args: []string{"help", "put"},
			out: "Invalid lines are named on standard error"},
		{name: "help of demo", args: []string{"demo", "--help"}, out: "Crawls a web on this machine"},
		{name: "serve without a file", args: []string{"serve"}, code: 2, errs: "usage: urlserver serve FILE"},
		{name: "serve with two files", args: []string{"serve", "a", "b"}, code: 2,
			errs: "usage: urlserver serve FILE"},
		{name: "check without a file", args: []string{"check"}, code: 2, errs: "usage: urlserver check FILE"},
		{name: "check", args: []string{"check", good}, out: "no mistakes"},
		{name: "check of no file", args: []string{"check", good + "x"}, code: 1, errs: "no such file"},
		{name: "put without a file", args: []string{"put"}, code: 2, errs: "usage: urlserver put FILE"},
		{name: "put at nowhere", args: []string{"put", "--at", "http://", "-"}, code: 2, errs: "--at"},
		{name: "put at another scheme", args: []string{"put", "--at", "ftp://a/", "-"}, code: 2,
			errs: "as in http://127.0.0.1:8080"},
		{name: "status with an argument", args: []string{"status", "x"}, code: 2, errs: "usage: urlserver status"},
		{name: "status at nobody", args: []string{"status", "--at", "http://127.0.0.1:1"}, code: 1,
			errs: "is the daemon running"},
		{name: "explain without a host", args: []string{"explain"}, code: 2, errs: "usage: urlserver explain HOST"},
		{name: "explain an empty host", args: []string{"explain", ""}, code: 2, errs: "HOST is empty"},
		{name: "show without a URL", args: []string{"show"}, code: 2, errs: "usage: urlserver show URL"},
		{name: "show of nothing", args: []string{"show", ""}, code: 2, errs: "URL is empty"},
		{name: "robots without an agent", args: []string{"robots", "-", "http://a/"}, code: 2, errs: "--agent"},
		{name: "robots without a URL", args: []string{"robots", "--agent", "a", "-"}, code: 2,
			errs: "usage: urlserver robots"},
		{name: "robots with no URL", args: []string{"robots", "--agent", "a", "-", "a"}, code: 2, errs: "URL"},
		{name: "robots with a wrong status", args: []string{"robots", "--agent", "a", "--status", "1000",
			"-", "http://a/"}, code: 2, errs: "--status 1000"},
		{name: "robots with a negative status",
			args: []string{"robots", "--agent", "a", "--status", "-1", "-", "http://a/"}, code: 2,
			errs: "--status -1"},
		{name: "robots without the file", args: []string{"robots", "--agent", "a", good + "x", "http://a/"},
			code: 1, errs: "no such file"},
		{name: "schema", args: []string{"schema"}, out: `"title": "crawl"`},
		{name: "schema with an argument", args: []string{"schema", "x"}, code: 2, errs: "usage: urlserver schema"},
		{name: "version", args: []string{"version"}, out: "urlserver "},
		{name: "version with an argument", args: []string{"version", "x"}, code: 2,
			errs: "usage: urlserver version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := command(t, "", c.args...)
			got.want(t, c.code, c.out, c.errs)
			if c.code == 0 && got.errs != "" || c.code != 0 && got.out != "" {
				t.Errorf("output %q, errors %q; results belong to the one, all else to the other", got.out, got.errs)
			}
		})
	}
}

// full is an output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullOutput: a command whose output cannot be written says so, and fails.
func TestFullOutput(t *testing.T) {
	for _, args := range [][]string{
		{"check", settings(t, "")}, {"schema"}, {"version"}, {"--version"}, {"man"}, {"completion", "bash"},
		{"help"}, {"put", "--help"}, {"robots", "--agent", "a", write(t, "robots.txt", ""), "http://a/"},
	} {
		var errs strings.Builder
		code := run(t.Context(), args, strings.NewReader(""), full{}, &errs)
		if code != 1 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: exit status %d, errors %q; want 1, and that there is no space", args, code, errs.String())
		}
	}
}

func TestCheckTellsAll(t *testing.T) {
	bad := write(t, "bad.toml", "Queue_Count = 0\n[spider]\nlisten = 1\nlsten = \"\"\n")
	got := command(t, "", "check", bad)
	got.want(t, 1, "", "settings refused:\n"+bad+":1: Queue_Count")
	for _, want := range []string{bad + ":3: spider.listen", bad + ":4: spider.lsten"} {
		if !strings.Contains(got.errs, want) {
			t.Errorf("errors %q; want %q among them", got.errs, want)
		}
	}
}

// check refuses the combinations of settings that serve refuses, with the line.
func TestCheckTellsWhatServeRefuses(t *testing.T) {
	command(t, "", "check",
		settings(t, "frontier.listen = \"127.0.0.1:0\"\n[docindex]\nkind = \"http\"\nurl = "+
			"\"http://127.0.0.1:1/\"")).want(t, 1, "", ":7: frontier.listen")
}

func TestRobots(t *testing.T) {
	const text = "User-agent: bot\nAllow: /x\nDisallow: /\nCrawl-delay: 2.5\n\nUser-agent: *\nDisallow: /<&>\n"
	file := write(t, "robots.txt", text)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{name: "allowed", args: []string{"--agent", "bot", file, "http://a/x?y"},
			want: `{"allowed":true,"rule":"allow: /x","crawl_delay_s":2.5}`},
		{name: "whole agent", args: []string{"--agent", "Bot/1.0 (+http://b/)", file, "http://a/y"},
			want: `{"allowed":false,"rule":"disallow: /","crawl_delay_s":2.5}`},
		{name: "standard input", args: []string{"--agent", "bot", "-", "http://a/"},
			want: `{"allowed":false,"rule":"disallow: /","crawl_delay_s":2.5}`},
		{name: "no rule", args: []string{"--agent", "other", file, "http://a"},
			want: `{"allowed":true,"rule":"","crawl_delay_s":0}`},
		{name: "not found", args: []string{"--agent", "bot", "--status", "404", file, "http://a/"},
			want: `{"allowed":true,"rule":"","crawl_delay_s":0}`},
		{name: "no answer", args: []string{"--agent", "bot", "--status", "0", file, "http://a/x"},
			want: `{"allowed":false,`},
		{name: "server error", args: []string{"--agent", "bot", "--status=503", file, "http://a/x"},
			want: `{"allowed":false,`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := command(t, text, append([]string{"robots"}, c.args...)...)
			got.want(t, 0, c.want, "")
			if strings.Count(got.out, "\n") != 1 || !strings.HasSuffix(got.out, "\n") {
				t.Errorf("output %q; want one line", got.out)
			}
		})
	}
}

// The part of robots.txt beyond robots.max_size is ignored, including a line that is cut.
func TestRobotsIsCut(t *testing.T) {
	pad := "User-agent: *\n" + strings.Repeat("#"+strings.Repeat("x", 62)+"\n", 8000) // 14 bytes over 512000
	got := command(t, pad[:512_000-10]+"\nDisallow: /a\nDisallow: /b\n", "robots", "--agent", "a", "-",
		"http://a/a")
	got.want(t, 0, `{"allowed":true,"rule":""`, "")
	got = command(t, pad[:511_000]+"\nDisallow: /a\n", "robots", "--agent", "a", "-", "http://a/a")
	got.want(t, 0, `{"allowed":false,"rule":"disallow: /a"`, "")
}
