package disk

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"urlserver/docindex"
)

// docNamer makes names of documents that nobody outside can foresee: URLs are chosen by strangers.
type docNamer struct {
	key  [16]byte
	mark [4]byte // in each DOC_ID that the store gives
}

func newDocNamer() (s docNamer) {
	rand.Read(s.key[:])
	rand.Read(s.mark[:])
	return s
}

const maxHashed = 1024 // bytes that are hashed on the stack

// name is the name of a document without an owner. Documents that were put before owners counted have it,
// whoever owns them.
func (s *docNamer) name(queue uint32, url []byte) (n name) {
	var room [maxHashed]byte
	sum := sha256.Sum256(append(append(room[:0], s.key[:]...), url...))
	n.queue = queue
	copy(n.hash[:], sum[:])
	return n
}

// nameOf is the name of a document of an owner; nil is none. The hash begins as that of the URL's own name,
// so that the documents of a URL stand side by side, and ends by the owner.
func (s *docNamer) nameOf(queue uint32, owner, url []byte) name {
	if len(owner) == 0 {
		return s.name(queue, url)
	}
	return s.tagged(queue, owner, url)
}

// tagged is nameOf, but that the name of a document without an owner is another one, too.
func (s *docNamer) tagged(queue uint32, owner, url []byte) name {
	n := s.name(queue, url)
	var room [maxHashed]byte
	text := append(append(room[:0], s.key[:]...), owner...)
	sum := sha256.Sum256(append(append(text, 0), n.hash[:]...))
	copy(n.hash[urlLen:], sum[:])
	return n
}

// nameOfPlan is the name of a scheduled document.
func (s *docNamer) nameOfPlan(queue uint32, p *plan) name {
	if p.tagged {
		return s.tagged(queue, docindex.OwnerOf(p.metadata), p.url)
	}
	return s.name(queue, p.url)
}

// givenLen is what a DOC_ID of the store is long.
const givenLen = (4 + nameLen) * 8 / 6

// docID is the DOC_ID of a document to which no client gave one.
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
