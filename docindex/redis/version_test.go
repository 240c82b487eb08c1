package redis

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

// TestEmptied: a Redis that is emptied under a daemon stays the store that it was, so that DOC_IDs
// mean the same to all daemons.
func TestEmptied(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	c := reach(t, a)
	if err := c.Do(t.Context(), c.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
	a.sweep(t.Context())
	b := d.start()
	put(t, a, 1)
	got := take(t, b)
	if got.Len() != 1 {
		t.Fatalf("%d documents; want the one that was put", got.Len())
	}
	end(t, a, got)
	if n := indextest.Count(t, a, nil); n.Completed != 1 {
		t.Errorf("after an outcome by the DOC_ID of another daemon %+v; want it completed", n)
	}
	if is, err := c.Do(t.Context(), c.B().Get().Key("{u0}:version").Build()).ToString(); err != nil || is != version {
		t.Errorf("the version is %q, %v; want %q", is, err, version)
	}
}

// A store of another version is refused and left as it is; one from before there were versions is
// taken for what it is.
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
	if err == nil || !strings.Contains(err.Error(), "version 99") ||
		!strings.Contains(err.Error(), "docindex.prefix") || b.Len() > 0 {
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
