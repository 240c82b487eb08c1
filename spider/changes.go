package spider

import (
	"hash/maphash"
	"sync"

	"urlserver/protocol"
)

// lastBodies knows the bodies that came last from some URLs, as hashes. It says whether a page has
// changed since this process fetched it before. It forgets a URL when another one takes its place.
// It is safe for concurrent use.
type lastBodies struct {
	seed maphash.Seed

	mu      sync.Mutex // guards entries; held for memory work only
	entries []lastBody // by the URL's hash; nil before the first body
}

type lastBody struct{ url, body uint64 }

// maxBodies is how many URLs a lastBodies can know, in 4 MiB.
const maxBodies = 1 << 18

func newLastBodies() *lastBodies { return &lastBodies{seed: maphash.MakeSeed()} }

// note keeps the body of a URL, and returns whether it differs from the last body of that URL; the
// zero Details: no such body is known.
func (l *lastBodies) note(url, body []byte) (d protocol.Details) {
	now := lastBody{url: maphash.Bytes(l.seed, url), body: maphash.Bytes(l.seed, body)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make([]lastBody, maxBodies)
	}
	last := &l.entries[now.url%maxBodies]
	if last.url == now.url {
		d.HasChanged, d.Changed = true, last.body != now.body
	}
	*last = now
	return d
}
