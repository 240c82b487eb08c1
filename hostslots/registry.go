package hostslots

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"net/netip"

	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
)

// registry holds the records of documents, origins, hosts and groups, their texts, and the indexes
// to find them by.
type registry struct {
	seed        maphash.Seed
	text        arena.Arena
	payloads    int // bytes of payloads in text
	docs        slab.Slab[document]
	origins     slab.Slab[origin]
	hosts       slab.Slab[host]
	groups      slab.Slab[group]
	docByID     hashindex.Index
	originByKey hashindex.Index
	hostByName  hashindex.Index
	groupByID   map[GroupID]uint32
	members     links[host] // of groups
	named       named
}

// named is what is known of groups that have a name.
type named struct {
	names map[GroupID]string
	addrs map[uint32]netip.Addr // of hosts on shared networks
}

func (r *registry) init() {
	r.seed = maphash.MakeSeed()
	r.groupByID = map[GroupID]uint32{}
	r.members = newLinks(&r.hosts, func(h *host) *link { return &h.member })
	r.named = named{names: map[GroupID]string{}, addrs: map[uint32]netip.Addr{}}
}

func (r *registry) hash(b []byte) uint32 { return uint32(maphash.Bytes(r.seed, b)) }

// A document's text in the arena: the length of the ID (1 byte) and of the URL (2 bytes), with
// ofCrawl in the latter the number of its crawl (2 bytes), with hasPayload the length of its payload
// (2 bytes), then ID, URL and payload. With ofOrigin in the first byte the URL goes on after the key
// of its origin, which is not stored again.
const (
	textHeader = 3
	fieldLen   = 2 // of crawl, and of the payload's length
	ofOrigin   = 1 << 7
	ofCrawl    = 1 << 15
	hasPayload = 1 << 14
)

// The longest ID and URL of a document.
const (
	maxID  = ofOrigin - 1
	maxURL = hasPayload - 1
)

// docText is what the arena has of a document.
type docText struct {
	id, url, payload []byte
	crawl            uint16
	ofOrigin         bool // url is what follows the key of its origin
}

func (t *docText) len() int {
	n := textHeader + len(t.id) + len(t.url) + len(t.payload)
	if t.crawl != 0 {
		n += fieldLen
	}
	if len(t.payload) > 0 {
		n += fieldLen
	}
	return n
}

func (r *registry) addText(t docText) arena.Ref {
	ref, b := r.text.New(t.len())
	size, head := uint16(len(t.url)), textHeader
	if t.crawl != 0 {
		binary.LittleEndian.PutUint16(b[head:], t.crawl)
		size, head = size|ofCrawl, head+fieldLen
	}
	if len(t.payload) > 0 {
		binary.LittleEndian.PutUint16(b[head:], uint16(len(t.payload)))
		size, head = size|hasPayload, head+fieldLen
	}
	if b[0] = byte(len(t.id)); t.ofOrigin {
		b[0] |= ofOrigin
	}
	binary.LittleEndian.PutUint16(b[1:], size)
	head += copy(b[head:], t.id)
	head += copy(b[head:], t.url)
	copy(b[head:], t.payload)
	r.payloads += len(t.payload)
	return ref
}

// idOf returns the ID of a document.
func (r *registry) idOf(d *document) []byte {
	head := r.text.Bytes(d.text, textHeader)
	from := textHeader
	if head[2]&(ofCrawl>>8) != 0 {
		from += fieldLen
	}
	if head[2]&(hasPayload>>8) != 0 {
		from += fieldLen
	}
	end := from + int(head[0]&maxID)
	return r.text.Bytes(d.text, end)[from:]
}

func (r *registry) textOf(d *document) (t docText) {
	head := r.text.Bytes(d.text, textHeader)
	idLen, size, from, payload := int(head[0]&maxID), binary.LittleEndian.Uint16(head[1:]), textHeader, 0
	t.ofOrigin = head[0]&ofOrigin != 0
	if size&ofCrawl != 0 {
		t.crawl = binary.LittleEndian.Uint16(r.text.Bytes(d.text, from+fieldLen)[from:])
		from += fieldLen
	}
	if size&hasPayload != 0 {
		payload = int(binary.LittleEndian.Uint16(r.text.Bytes(d.text, from+fieldLen)[from:]))
		from += fieldLen
	}
	end := idLen + int(size&maxURL)
	b := r.text.Bytes(d.text, from+end+payload)[from:]
	t.id, t.url, t.payload = b[:idLen:idLen], b[idLen:end:end], b[end:]
	return t
}

func (r *registry) findDoc(hash uint32, id []byte) uint32 {
	return r.docByID.Find(hash, func(n uint32) bool {
		return bytes.Equal(r.idOf(r.docs.At(n)), id)
	})
}

// removeDoc forgets a document. It returns the number of its crawl.
func (r *registry) removeDoc(n uint32) (crawl uint16) {
	d := r.docs.At(n)
	t := r.textOf(d)
	r.docByID.Remove(r.hash(t.id), n)
	r.payloads -= len(t.payload)
	r.text.Free(d.text, t.len())
	r.docs.Free(n)
	return t.crawl
}

func (r *registry) findOrigin(hash uint32, key []byte) uint32 {
	return r.originByKey.Find(hash, func(id uint32) bool { return bytes.Equal(r.originKey(id), key) })
}

func (r *registry) originKey(id uint32) []byte {
	o := r.origins.At(id)
	return r.text.Bytes(o.text, int(o.textLen))
}

// addOrigin adds a record whose hash and host are set.
func (r *registry) addOrigin(key []byte, o origin) uint32 {
	h := r.hosts.At(o.host)
	id := r.origins.New()
	ref, b := r.text.New(len(key))
	copy(b, key)
	o.text, o.textLen, o.next = ref, uint16(len(key)), h.origins
	*r.origins.At(id) = o
	h.origins = id
	r.originByKey.Add(o.hash, id)
	return id
}

// removeOrigin forgets a record that is not linked to its host any more. It returns the one that
// was linked behind it.
func (r *registry) removeOrigin(id uint32) (next uint32) {
	o := r.origins.At(id)
	next = o.next
	r.originByKey.Remove(o.hash, id)
	r.text.Free(o.text, int(o.textLen))
	r.origins.Free(id)
	return next
}

// unlinkOrigin takes a record out of the list of its host.
func (r *registry) unlinkOrigin(id uint32) {
	o := r.origins.At(id)
	at := &r.hosts.At(o.host).origins
	for *at != id {
		at = &r.origins.At(*at).next
	}
	*at = o.next
}

func (r *registry) findHost(hash uint32, name []byte) uint32 {
	return r.hostByName.Find(hash, func(id uint32) bool { return bytes.Equal(r.hostName(id), name) })
}

func (r *registry) hostName(id uint32) []byte {
	h := r.hosts.At(id)
	return r.text.Bytes(h.name, int(h.nameLen))
}

func (r *registry) addHost(hash uint32, name []byte) uint32 {
	id := r.hosts.New()
	ref, b := r.text.New(len(name))
	copy(b, name)
	*r.hosts.At(id) = host{name: ref, nameLen: uint8(len(name)), hash: hash}
	r.hostByName.Add(hash, id)
	return id
}

// removeHost forgets a host without origins and without a group.
func (r *registry) removeHost(id uint32) {
	h := r.hosts.At(id)
	r.hostByName.Remove(h.hash, id)
	r.text.Free(h.name, int(h.nameLen))
	delete(r.named.addrs, id)
	r.hosts.Free(id)
}

// removeGroup forgets a group without hosts.
func (r *registry) removeGroup(id uint32) {
	g := r.groups.At(id)
	delete(r.groupByID, g.id)
	delete(r.named.names, g.id)
	r.groups.Free(id)
}

func (r *registry) addr(hostID uint32) netip.Addr {
	if addr, ok := r.named.addrs[hostID]; ok {
		return addr
	}
	h := r.hosts.At(hostID)
	if h.above != 0 {
		return r.groups.At(h.above).ip()
	}
	return r.groups.At(h.group).ip()
}

func (r *registry) hostOfDoc(doc uint32) uint32 { return r.origins.At(r.docs.At(doc).origin).host }

// groupOfDoc returns the group of a document's host; 0: it has none.
func (r *registry) groupOfDoc(doc uint32) uint32 { return r.hosts.At(r.hostOfDoc(doc)).group }
