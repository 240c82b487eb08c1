package redis

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// TestOneShardForAKey: a call that names a key asks the shard with the queues of that key, a call that
// names none asks all.
func TestOneShardForAKey(t *testing.T) {
	s := newDaemons(t).start()
	putURLs(t, s, "", "http://h1.test/")
	for key, want := range map[string]int{"h1.test": 1, "h2.test": 1, "": shards} {
		asked := 0
		after(t, s, readyScript, func(answers []rueidis.RedisResult) { asked = len(answers) })
		got := 0
		r := docindex.Request{AnyCrawl: true, Scope: docindex.Scope{Key: []byte(key)}, Lease: testLease}
		err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
			got += h.Len()
			return nil
		})
		if err != nil || asked != want || key == "h2.test" && got > 0 {
			t.Errorf("of key %q %d shards are asked, and %d URLs given, %v; want %d shards", key, asked, got, err, want)
		}
	}
}

// TestServedThoughAShardErrs: a client is given what was leased to it where one of the shards does
// not answer. What that shard has leased comes when the lease has ended.
func TestServedThoughAShardErrs(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("http://h%d.test/", i))
	}
	slices.Sort(all)
	putURLs(t, s, "", all...)
	after(t, s, serveScript, func(answers []rueidis.RedisResult) {
		answers[0] = rueidis.NewErrorResult(errors.New("the connection has ended"))
	})
	serve := func() (got []string, err error) {
		r := docindex.Request{AnyCrawl: true, Lease: testLease}
		err = s.Serve(t.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				got = append(got, string(h.At(i).URL))
			}
			return nil
		})
		return got, err
	}
	got, err := serve()
	if err == nil || len(got) == 0 || len(got) == len(all) {
		t.Fatalf("%d of %d URLs are given, %v; want an error, and those of the shards that answer", len(got),
			len(all), err)
	}
	var p docindex.Puts
	for _, url := range got {
		if err := p.Add(docindex.Put{URL: []byte(url), Update: true, Due: docindex.Never}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	d.pass(2 * testLease)
	rest, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, rest...)
	slices.Sort(got)
	want(t, "in the end", got, all...)
}
