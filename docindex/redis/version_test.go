package redis

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

// A store of another version is refused and left as it is; one from before there were versions is taken for what it is.
func TestVersion(t *testing.T) {
	server := redistest.Start(t)
	open := func() *Store {
		s := patientStore(Config{Addrs: []string{server.Addr()}, Lease: testLease}, nil)
		t.Cleanup(func() { s.Close() })
		return s
	}
	writer := open()
	c := reach(t, writer)
	put(t, writer, 1)
	is := func() (value string, keys int64) {
		value, _ = c.Do(t.Context(), c.B().Get().Key("{u0}:version").Build()).ToString()
		keys, err := c.Do(t.Context(), c.B().Dbsize().Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return value, keys
	}
	if value, _ := is(); value != version {
		t.Errorf("a new store is of version %q; want %q", value, version)
	}
	set := func(command rueidis.Completed) {
		if err := c.Do(t.Context(), command).Error(); err != nil {
			t.Fatal(err)
		}
	}
	set(c.B().Set().Key("{u0}:version").Value("99").Build())
	_, before := is()
	var b docindex.Batch
	err := open().Candidates(t.Context(), 1, nil, &b)
	if err == nil || !strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), "docindex.prefix") || b.Len() > 0 {
		t.Errorf("%d candidates, %v; want none of a store of version 99, and what to do", b.Len(), err)
	}
	if value, keys := is(); value != "99" || keys != before {
		t.Errorf("it has %d keys, and is of version %q, after it was refused; before it had %d", keys, value, before)
	}
	set(c.B().Del().Key("{u0}:version").Build())
	if err := open().Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
		t.Errorf("%d candidates, %v of a store without a version; want the one", b.Len(), err)
	}
}
