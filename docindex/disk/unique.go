package disk

import (
	"bytes"
	"crypto/sha256"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// uniqueKey returns the key of the row that finds a document of a crawl by its identity, which has
// a unique. The key is in place of a DOC_ID, and begins with a byte that no DOC_ID has.
func (s *docNamer) uniqueKey(crawl, identity []byte) []byte {
	sum := sha256.New()
	sum.Write(s.key[:])
	sum.Write(crawl)
	sum.Write([]byte{0})
	sum.Write(identity)
	return sum.Sum([]byte{0})[:1+hashLen]
}

// findUnique is find for a Put with a unique. It finds the document in any queue of the crawl. If
// there is none, it sets queue and name as they are for a new document.
func (x *documents) findUnique(a *prefetched, p *docindex.Put, host []byte) (*doc, error) {
	n, ok, err := x.named(x.namer.uniqueKey(p.Crawl, docindex.IdentityOf(p)))
	if err != nil {
		return nil, err
	}
	if ok {
		id, err := x.queues.cold.loadAny(n.queue)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			if d, err := x.load(&n); err != nil || d != nil {
				a.queue, a.name = id, n
				return d, err
			}
		}
	}
	*a, err = x.nameOf(p, host)
	return nil, err
}

// lastingOf returns the part of its body that a completed document keeps. It leaves out the owner
// of a document without a unique: its row or its crawl names the owner.
func lastingOf(k docindex.Packed) docindex.Packed {
	if k.IsPlain() {
		return nil
	}
	if len(k.Unique()) > 0 {
		return k.Lasting()
	}
	var p docindex.Put
	k.Unpack(&p)
	return docindex.Pack(&docindex.Put{Depth: p.Depth})
}

// nothing is the lasting of documents that keep nothing.
var nothing docindex.Packed

// keep returns k as a value of doc.lasting. That is a pointer to keep a doc small: a map allocates
// each value of more than 128 bytes.
func keep(k docindex.Packed) *docindex.Packed {
	if len(k) == 0 {
		return &nothing
	}
	own := k
	return &own
}

// kept returns d.lasting, or nothing.
func (d *doc) kept() docindex.Packed {
	if d.lasting == nil {
		return nil
	}
	return *d.lasting
}

// lasting returns lastingOf of a document's body. It reads the body only of a document that is
// scheduled and has more than metadata.
func (x *documents) lasting(n *name, d *doc) (docindex.Packed, error) {
	switch {
	case d.completed && !d.purged, d.lasting != nil:
		return d.kept(), nil
	case !d.packed:
		return nil, nil
	}
	body, err := x.body(n.queue, &d.at)
	return lastingOf(body.packed), err
}

// withPayload adds the payload of a document that is not completed to the part of the body that it
// keeps.
func (x *documents) withPayload(n *name, d *doc, lasting docindex.Packed) (docindex.Packed, error) {
	body, err := x.body(n.queue, &d.at)
	var p docindex.Put
	lasting.Unpack(&p)
	p.Payload = body.packed.Payload()
	return docindex.Pack(&p), err
}

// setText sets the part of a document's body that a transit keeps.
func (t *transit) setText(body *plan) {
	t.idLen, t.packed = uint8(len(body.id)), !body.packed.IsPlain()
	if lasting := lastingOf(body.packed); len(lasting) > 0 {
		t.id = string(append(bytes.Clone(body.id), lasting...))
	} else {
		t.id = string(body.id)
	}
}

// settleUpdate decides whether a Put of a known document updates it, and sets in an update the
// parts that the document keeps.
func (x *documents) settleUpdate(n *name, d *doc, p *docindex.Put, now int64) error {
	state, _ := x.state(n, d)
	if p.Sooner && !p.Update {
		p.Update = embedded.BringsForward(p, state, d.at.due(), now)
		if p.Update && state == docindex.Scheduled {
			body, err := x.body(n.queue, &d.at)
			if err != nil {
				return err
			}
			p.Priority = d.at.priority()
			body.packed.Unpack(p)
		}
	}
	if !p.Update {
		return nil
	}
	if len(p.Unique) > 0 { // it may have another URL than p
		url, err := x.url(n, d)
		if err != nil {
			return err
		}
		p.URL = url
	}
	return x.renew(n, d, p)
}

// renew makes an update keep what the document keeps: its owner, its unique and depth, and its
// payload unless the update has one.
func (x *documents) renew(n *name, d *doc, p *docindex.Put) error {
	if p.Due == docindex.Never {
		return nil // the update completes the document
	}
	owner, err := x.ownerOf(n, d)
	if err != nil {
		return err
	}
	packed, err := x.lasting(n, d)
	if err == nil && d.packed && !d.completed {
		var body plan
		body, err = x.body(n.queue, &d.at)
		packed = body.packed
	}
	if err != nil {
		return err
	}
	packed.Renew(p)
	p.Metadata = docindex.WithOwner(p.Metadata, owner)
	return nil
}

// idsOf returns the ends of the keys of id rows that are for a document of a crawl.
func (x *documents) idsOf(crawl, id []byte, packed docindex.Packed) (all [][]byte) {
	if len(id) > 0 {
		all = append(all, bytes.Clone(id))
	}
	if len(packed.Unique()) > 0 {
		all = append(all, x.namer.uniqueKey(crawl, packed.Identity()))
	}
	return all
}
