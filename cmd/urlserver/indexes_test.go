package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"urlserver/internal/testkit/redistest"
)

// eachIndex runs a test with each kind of embedded index. more is the section of the settings that
// names it, open at its end.
func eachIndex(t *testing.T, test func(t *testing.T, more string)) {
	for kind, more := range map[string]func(t *testing.T) string{
		"memory": func(*testing.T) string { return "" },
		"disk":   func(t *testing.T) string { return fmt.Sprintf("path = %q", filepath.Join(t.TempDir(), "index")) },
		"redis":  func(t *testing.T) string { return fmt.Sprintf("addrs = [%q]", redistest.Start(t).Addr()) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it mostly waits
			test(t, fmt.Sprintf("[docindex]\nkind = %q\n%s\n", kind, more(t)))
		})
	}
}

// TestEachIndex fetches three URLs from each kind of embedded index: one is to be fetched again,
// one has ended, one is at the spider. /api/status counts them, and show tells what came back.
func TestEachIndex(t *testing.T) {
	eachIndex(t, func(t *testing.T, index string) {
		d := startDaemon(t, settings(t, index+"max_retry = \"1s\"\nrefetch_after = { error = \"48h\" }\n"))
		sp := dialSpider(t, d.spiders)
		command(t, "http://127.0.0.1/ended\nhttp://127.0.0.2/again\nhttp://127.0.0.3/out\n",
			"put", "--at", d.at, "-").
			want(t, 0, `"new":3`, "")
		for range 3 {
			switch f := sp.next(); f[2] {
			case "127.0.0.1":
				fmt.Fprintf(sp.conn, "%s DONE 204\n", f[0])
			case "127.0.0.2":
				fmt.Fprintf(sp.conn, "%s DONE 503\n", f[0])
			}
		}
		d.shows("/api/status", `"embedded":true,"scheduled":1,"in_transit":1,"completed":1}`)
		show := func(url string, wants ...string) {
			t.Helper()
			got := command(t, "", "show", "--at", d.at, url)
			for _, want := range wants {
				got.want(t, 0, want, "")
			}
		}
		show("http://127.0.0.1/ended", "state         completed\n", "last outcome  done, status 204, at 2")
		show("http://127.0.0.2/again", "state         scheduled\n", ", in 4",
			"last outcome  done, status 503, at 2",
			"next step     none; it waits until it is due\n")
		show("http://127.0.0.3/out", "state         in transit\n", "last outcome  none\n")
		sp.conn.Close()
	})
}
