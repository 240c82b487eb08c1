package hostslots

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"net/netip"

	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
)

// registry holds the records of documents, origins, hosts and groups, their texts, and the indexes
// to find them by.
type registry struct {
	seed         maphash.Seed
	text         arena.Arena
	payloads     int // bytes of payloads in text
	docs         slab.Slab[document]
	origins      slab.Slab[origin]
	hosts        slab.Slab[host]
	groups       slab.Slab[group]
	docByID      hashindex.Index
	hostByName   hashindex.Index
	otherOrigins hashindex.Index // see findOrigin
	groupByID    map[GroupID]uint32
	members      links[host] // of groups
	named        named
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

// docText is the text of a document in the arena.
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

// findOrigin returns the origin of a host with the given key; 0: there is none. A host may have an
// origin for each port. Mostly the key of the first origin in its list is the text of the host;
// such an origin has no entry in otherOrigins.
func (r *registry) findOrigin(hostID uint32, key []byte) (id uint32) {
	h := r.hosts.At(hostID)
	if !r.isInIndex(h.origins, h) && bytes.Equal(r.hostText(h), key) {
		return h.origins
	}
	return r.otherOrigins.Find(r.hash(key), func(id uint32) bool {
		return r.origins.At(id).host == hostID && bytes.Equal(r.originKey(id), key)
	})
}

// isInIndex reports whether otherOrigins has an origin of a host.
func (r *registry) isInIndex(id uint32, h *host) bool {
	return id != h.origins || id != 0 && r.origins.At(id).text != h.text
}

// originOf returns the origin that a pool queue belongs to. The origin itself may be given, too.
func (r *registry) originOf(queue uint32) (originID uint32) {
	if o := r.origins.At(queue); o.pool != 0 {
		return uint32(o.text)
	}
	return queue
}

func (r *registry) originKey(id uint32) []byte {
	o := r.origins.At(id)
	return r.text.Bytes(o.text, int(o.textLen))
}

// addOrigin adds an origin of a host. If the text of the host is the key it is not stored again.
func (r *registry) addOrigin(hostID uint32, key []byte) uint32 {
	h := r.hosts.At(hostID)
	if first := h.origins; first != 0 && !r.isInIndex(first, h) {
		r.otherOrigins.Add(r.hash(r.originKey(first)), first)
	}
	ref := h.text
	if !bytes.Equal(r.hostText(h), key) {
		ref = r.copyText(key)
	}
	id := r.origins.New()
	*r.origins.At(id) = origin{text: ref, textLen: uint16(len(key)), host: hostID, next: h.origins}
	if h.origins = id; r.isInIndex(id, h) {
		r.otherOrigins.Add(r.hash(key), id)
	}
	return id
}

// addQueue adds a pool queue to an origin.
func (r *registry) addQueue(originID, pool uint32) uint32 {
	id := r.origins.New()
	o := r.origins.At(originID)
	*r.origins.At(id) = origin{text: arena.Ref(originID), host: o.host, closed: o.closed & forRobots, pool: pool,
		next: o.next}
	o.next = id
	return id
}

// removeOrigin forgets an origin or a pool queue of a host that is being forgotten, or a pool queue that is not
// linked to its host any more. It returns the one that was linked behind it.
func (r *registry) removeOrigin(id uint32) (next uint32) {
	o := r.origins.At(id)
	next = o.next
	if o.pool == 0 {
		h := r.hosts.At(o.host)
		if r.isInIndex(id, h) {
			r.otherOrigins.Remove(r.hash(r.originKey(id)), id)
		}
		if o.text != h.text {
			r.text.Free(o.text, int(o.textLen))
		}
	}
	r.origins.Free(id)
	return next
}

func (r *registry) copyText(b []byte) arena.Ref {
	ref, to := r.text.New(len(b))
	copy(to, b)
	return ref
}

// unlinkQueue takes a pool queue out of the list of its host.
func (r *registry) unlinkQueue(id uint32) {
	at := &r.origins.At(r.originOf(id)).next
	for *at != id {
		at = &r.origins.At(*at).next
	}
	*at = r.origins.At(id).next
}

func (r *registry) findHost(hash uint32, name []byte) uint32 {
	return r.hostByName.Find(hash, func(id uint32) bool { return bytes.Equal(r.hostName(id), name) })
}

func (r *registry) hostName(id uint32) []byte {
	h := r.hosts.At(id)
	return r.hostText(h)[h.nameAt:]
}

// hostText returns the name of a host, or the key of its first origin where that ends with the name.
func (r *registry) hostText(h *host) []byte {
	return r.text.Bytes(h.text, int(h.nameAt)+int(h.nameLen))
}

// addHost adds a host. key is that of the origin that it is added for; nil: for none.
func (r *registry) addHost(hash uint32, name, key []byte) uint32 {
	id := r.hosts.New()
	h := host{nameLen: uint8(len(name)), hash: hash}
	if scheme := len(key) - len(name); bytes.HasSuffix(key, name) && scheme <= math.MaxUint8 {
		h.text, h.nameAt = r.copyText(key), uint8(scheme)
	} else {
		h.text = r.copyText(name)
	}
	*r.hosts.At(id) = h
	r.hostByName.Add(hash, id)
	return id
}

// removeHost forgets a host without origins and without a group.
func (r *registry) removeHost(id uint32) {
	h := r.hosts.At(id)
	r.hostByName.Remove(h.hash, id)
	r.text.Free(h.text, len(r.hostText(h)))
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
