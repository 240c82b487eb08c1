package spider

import (
	"errors"
	"hash/maphash"
	"sync"
)

// nesting knows how many sitemap indexes a sitemap stands below, so that a chain of indexes has an
// end. It forgets a sitemap when another one takes its place. It is safe for concurrent use.
type nesting struct {
	seed maphash.Seed

	mu      sync.Mutex // guards entries; held for memory work only
	entries []nested   // by the URL's hash; nil before the first index
}

type nested struct {
	url   uint64
	level uint8
}

const (
	maxNesting  = 10      // indexes above an index whose sitemaps are put
	maxNestings = 1 << 17 // URLs that a nesting can know, in 2 MiB
)

var errSitemapNested = errors.New("it is an index below ten others")

func newNesting() *nesting { return &nesting{seed: maphash.MakeSeed()} }

// limit notes the sitemaps that the index at url names. If the index is too far down, limit removes
// them from found instead, and sets found.fault.
func (n *nesting) limit(url []byte, found *linkSet) {
	if !found.isIndex {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.entries == nil {
		n.entries = make([]nested, maxNestings)
	}
	level := uint8(0)
	hash := maphash.Bytes(n.seed, url)
	if e := n.entries[hash%maxNestings]; e.url == hash {
		level = e.level
	}
	if level >= maxNesting {
		found.urls, found.fault = nil, errSitemapNested
		return
	}
	for _, link := range found.urls {
		below := nested{maphash.String(n.seed, link), level + 1}
		if e := &n.entries[below.url%maxNestings]; e.level <= below.level || e.url == below.url {
			*e = below
		}
	}
}
