package main

import (
	"fmt"
	"strings"
	"testing"

	"urlserver/configs"
)

// check lists at most ten mistakes of a kind, and counts the others.
func TestCheckIsShort(t *testing.T) {
	var text strings.Builder
	for n := range 30 {
		fmt.Fprintf(&text, "key%d = 1\n", n)
	}
	text.WriteString("[http]\nlisten = 1\n")
	got := command(t, "", "check", write(t, "my.toml", text.String()))
	got.want(t, 1, "", "\n20 more mistakes of these kinds\n")
	if n := strings.Count(got.errs, "no such key"); n != maxAlike || !strings.Contains(got.errs, "http.listen") {
		t.Errorf("%d unknown keys are listed; want %d, and http.listen:\n%s", n, maxAlike, got.errs)
	}
}

// check finds combinations of settings with which the daemon would not start.
func TestCheckLooksAround(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		code     int
		errs     string
	}{
		"one port": {"[spider]\nlisten = \"127.0.0.1:8080\"\n", 1,
			`spider.listen "127.0.0.1:8080" and http.listen "127.0.0.1:8080" want the same port`},
		"one port, all addresses": {"allow_insecure = true\n[http]\nlisten = \"0.0.0.0:4101\"\n", 1,
			"want the same port"},
		"any free port":   {"[spider]\nlisten = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"\n", 0, ""},
		"other addresses": {"[spider]\nlisten = \"127.0.0.2:8080\"\n", 0, ""},
		"no certificate": {"[spider]\ntls_cert = \"/nowhere/cert.pem\"\ntls_key = \"/nowhere/key.pem\"\n", 1,
			"spider.tls_key: stat /nowhere/key.pem: no such file"},
		"a folder for a key": {"[spider]\ntls_cert = \"/etc/hosts\"\ntls_key = \"/\"\n", 1,
			"spider.tls_key: / is a folder; name a file in it"},
		"a site faster than its address": {"Req_Host_Per_Sec = 0.5\npoliteness.site_per_sec = 2\n", 0,
			"warning: politeness.site_per_sec (2) is more than Req_Host_Per_Sec (0.5), which holds for all sites"},
		"a site faster than its network": {
			"[[rules]]\nnetworks = [\"192.0.2.0/24\"]\nshared = true\nper_sec = 1\nsite_per_sec = 3\n", 0,
			"warning: rule 1: site_per_sec (3) is more than per_sec (1)"},
		"no file of shared networks": {"[politeness]\nshared_networks = \"/nowhere/list.toml\"\n", 1,
			"politeness.shared_networks: settings: open /nowhere/list.toml"},
		"no seeds": {"[docindex]\nseeds = [\"/nowhere/seeds.txt\"]\n", 1,
			"docindex.seeds: stat /nowhere/seeds.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			command(t, "", "check", write(t, "my.toml", c.settings)).want(t, c.code, "", c.errs)
		})
	}
}

// check tells where the values are from that are not the defaults, and warns of variables without
// a setting.
func TestCheckTellsSources(t *testing.T) {
	command(t, "", "check", write(t, "my.toml", "")).want(t, 0, fmt.Sprintf(
		": no mistakes\nall %d settings have their defaults\n", len(configs.Default().Shown())), "")
	t.Setenv("URLSERVER_DOCINDEX_BATCH", "9")
	t.Setenv("URLSERVER_DOCINDEX_KIN", "disk")
	got := command(t, "", "check", write(t, "my.toml", "Queue_Len = 7\nQueue_Count = 4096\n"))
	got.want(t, 0, "no mistakes\nQueue_Len = 7, from the file\ndocindex.batch = 9, from the environment\n",
		"variables that name no setting: URLSERVER_DOCINDEX_KIN; did you mean URLSERVER_DOCINDEX_KIND\n")
	if strings.Contains(got.out, "Queue_Count") || !strings.Contains(got.out, " other settings have their defaults\n") {
		t.Errorf("what has its default is listed, or not counted:\n%s", got.out)
	}
	t.Setenv("URLSERVER_DOCINDEX_BATCH", "many")
	got = command(t, "", "check", write(t, "my.toml", ""))
	got.want(t, 1, "", "URLSERVER_DOCINDEX_BATCH: is a string; allowed: a whole number")
}
