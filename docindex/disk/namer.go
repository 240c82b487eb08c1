package disk

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// docNamer gives documents names that nobody outside can foresee, since strangers choose the URLs.
//
// A short hash has urlLen bytes. Of 10^9 URLs in one queue, two have the same hash in one of two
// million stores. A store that was made before version 9 has long hashes, of hashLen bytes.
type docNamer struct {
	key   [16]byte
	mark  [4]byte // in each DOC_ID that the store gives
	short bool    // hashes are short, unless they depend on an owner
}

func newDocNamer() (s docNamer) {
	s.short = true
	rand.Read(s.key[:])
	rand.Read(s.mark[:])
	return s
}

const maxHashed = 1024 // bytes that are hashed on the stack

// name returns the name of a document without an owner. Documents that were put before there were
// owners have such a name, whoever owns them.
func (s *docNamer) name(queue uint32, url []byte) (n name) {
	var room [maxHashed]byte
	sum := sha256.Sum256(append(append(room[:0], s.key[:]...), url...))
	n.queue = queue
	copy(n.hash[:s.hashed()], sum[:])
	return n
}

// hashed returns the length in bytes of a hash that depends on no owner.
func (s *docNamer) hashed() int {
	if s.short {
		return urlLen
	}
	return hashLen
}

// nameOf returns the name of a document with an identity (see docindex.Packed); nil: none. The hash
// begins with that of the URL, so the documents of a URL are neighbours, and ends with that of the
// identity.
func (s *docNamer) nameOf(queue uint32, identity, url []byte) name {
	if len(identity) == 0 {
		return s.name(queue, url)
	}
	return s.tagged(queue, identity, url)
}

// tagged is like nameOf, but gives a document without an identity another name than name does.
func (s *docNamer) tagged(queue uint32, identity, url []byte) name {
	n := s.name(queue, url)
	var room [maxHashed]byte
	text := append(append(room[:0], s.key[:]...), identity...)
	sum := sha256.Sum256(append(append(text, 0), n.hash[:]...))
	copy(n.hash[urlLen:], sum[:])
	return n
}

// nameOfPlan returns the name of a scheduled document.
func (s *docNamer) nameOfPlan(queue uint32, p *plan) name {
	if p.tagged {
		return s.tagged(queue, p.packed.Identity(), p.url)
	}
	return s.name(queue, p.url)
}

// keyName returns the name of the row that has the number of a crawl's queue with a key.
func (s *docNamer) keyName(crawl, key []byte) (n name) {
	var room [maxHashed]byte
	text := append(append(room[:0], s.key[:]...), 0)
	sum := sha256.Sum256(append(append(appendText(text, crawl), 0), key...))
	copy(n.hash[:s.hashed()], sum[:])
	return n
}

// givenLen is the length of a DOC_ID that the store gives.
const givenLen = (4 + nameLen) * 8 / 6

// docID appends the DOC_ID of a document to which no client gave one.
func (s *docNamer) docID(dst []byte, n *name) []byte {
	var raw [4 + nameLen]byte
	return base64.RawURLEncoding.AppendEncode(dst, n.append(append(raw[:0], s.mark[:]...)))
}

// named is the reverse of docID.
func (s *docNamer) named(docID []byte) (n name, ok bool) {
	var raw [4 + nameLen]byte
	if len(docID) != givenLen {
		return n, false
	}
	if _, err := base64.RawURLEncoding.Decode(raw[:], docID); err != nil || !bytes.Equal(raw[:4], s.mark[:]) {
		return n, false
	}
	n, err := readName(raw[4:])
	return n, err == nil
}

// trimDot returns a host name without its final dot, as the scheduler knows it.
func trimDot(host []byte) []byte {
	if len(host) > 1 && host[len(host)-1] == '.' {
		return host[:len(host)-1]
	}
	return host
}
