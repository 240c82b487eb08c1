package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNothingSteersTheTerminal: commands print no control characters of a server except line ends
// and tabs, and JSON keeps its meaning.
func TestNothingSteersTheTerminal(t *testing.T) {
	const evil = "a\u009b31m\\u001b]0;x\\u0007\u0085\x7f\xffz"
	reply := `{"crawlid":"` + evil + `","host":"` + evil + `","why":"` + evil + `","crawls":[{"crawlid":"` +
		evil + `"}],"all":1,"note":"` + evil + `"}` + "\n"
	at := answers(t, reply).URL
	refuses := answers(t, `{"error":"`+evil+`"}`+"\n").URL
	for _, args := range [][]string{
		{"crawl", "info", "--at", at, "-"}, {"crawl", "list", "--at", at}, {"explain", "--at", at, "a"},
		{"explain", "--json", "--at", at, "a"}, {"show", "--at", at, "a"}, {"show", "--at", refuses, "a"},
		{"status", "--at", at}, {"status", "--json", "--at", at}, {"top", "--lines", "1", "--at", at},
		{"export", "--at", at, "-"}, {"export", "--at", refuses, "-"},
		{"crawl", "info", "--at", refuses, "-"},
	} {
		got := command(t, `{"action":"info","appid":"a","uuid":"u","spiderid":"s"}`, args...)
		if text := got.out + got.errs; strings.ContainsFunc(text, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
		}) || strings.Contains(text, "\xff") {
			t.Errorf("%v prints %q", args, text)
		}
	}
	got := command(t, `{"action":"info","appid":"a","uuid":"u","spiderid":"s"}`, "crawl", "info", "--at",
		at, "-")
	var was, is map[string]any
	if json.Unmarshal([]byte(reply), &was) != nil || json.Unmarshal([]byte(got.out), &is) != nil ||
		was["crawlid"] != is["crawlid"] {
		t.Errorf("crawl info prints %q, %q; want what the daemon says", got.out, got.errs)
	}
}

// TestExportFollowsNoLink: export follows no symbolic link, neither at the file nor at its
// temporary file.
func TestExportFollowsNoLink(t *testing.T) {
	at := answers(t, `{"end":"0"}`+"\n").URL
	victim := write(t, "victim", "as before")
	dir := t.TempDir()
	file := filepath.Join(dir, "all.ndjson")
	for _, target := range []string{victim, os.DevNull, filepath.Join(dir, "nothing")} {
		if err := os.Symlink(target, file); err != nil {
			t.Fatal(err)
		}
		command(t, "", "export", "--at", at, file).want(t, 2, "", "symbolic link")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(victim, file+".part"); err != nil {
		t.Fatal(err)
	}
	command(t, "", "export", "--at", at, file).want(t, 0, `{"urls":0,"settings":0}`, "")
	if text, err := os.ReadFile(victim); err != nil || string(text) != "as before" {
		t.Errorf("what the links led to has %q, %v; want it as before", text, err)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the export is %v, %v; want a file that its owner alone may read", info.Mode(), err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("there are %v; want the export alone", names)
	}
}

// TestIndexIsPrivate: only the owner can read the index, even if the folder was readable before.
func TestIndexIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, settings(t, "docindex.kind = \"disk\"\ndocindex.path = \""+dir+"\""))
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v", path, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("%d files, %v", files, err)
	}
	c.signal(syscall.SIGTERM)
	c.wait()
}

// TestCheckWarns: check warns of tokens that can be guessed, and of a file that others can read.
func TestCheckWarns(t *testing.T) {
	short := write(t, "short.toml", "http.token = \"short\"\nspider.token = \"0123456789abcdef\"\n")
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o604: true} {
		if err := os.Chmod(short, mode); err != nil {
			t.Fatal(err)
		}
		got := command(t, "", "check", short)
		got.want(t, 0, "no mistakes", "http.token has 5 characters")
		if strings.Contains(got.errs, "every user of this machine can read it") != warns ||
			strings.Contains(got.errs, "spider.token") {
			t.Errorf("mode %v: %s", mode, got.errs)
		}
	}
	none := write(t, "none.toml", "Queue_Len = 7\n")
	if err := os.Chmod(none, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "", "check", none); got.code != 0 || got.errs != "" {
		t.Errorf("without a secret: %+v", got)
	}
}
