package redis

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/redis/rueidis"

	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

// TestOldVersion goes on with what version 1 wrote: testdata has the commands that make it, their
// words in base64.
func TestOldVersion(t *testing.T) {
	server := redistest.Start(t)
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, err := os.Open("testdata/version1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var words [][]byte
		if err := json.Unmarshal(lines.Bytes(), &words); err != nil {
			t.Fatal(err)
		}
		command := c.B().Arbitrary(string(words[0])).Keys(string(words[1]))
		for _, word := range words[2:] {
			command = command.Args(string(word))
		}
		if err := c.Do(t.Context(), command.Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	s := patientStore(Config{Addrs: []string{server.Addr()}, Lease: testLease}, nil)
	t.Cleanup(func() { s.Close() })
	reach(t, s)
	indextest.RunOld(t, s)
	if is, err := c.Do(t.Context(), c.B().Get().Key("{u0}:version").Build()).ToString(); err != nil || is != version {
		t.Errorf("it is of version %q, %v; want %s", is, err, version)
	}
}
