package hostslots

// Prepared is how many documents, or groups, are prepared together.
//
// To prepare is to read the records that the next calls begin with, so that the processor has them
// in its cache by then. It waits for memory for all of them together. Without it each document
// would wait several times, as the origin names the host, the host its group, and that the slot.
// With few groups, whose records stay in the cache anyway, that would cost more than it saves.
const Prepared = 16

const fewGroups = 1 << 16

func (s *Slots) worthPreparing() bool { return s.groups.Len() >= fewGroups && s.docs.Len() > 0 }

// prepareNext prepares, once for so many calls, the groups that come next.
func (s *Slots) prepareNext() {
	d := &s.dispatch
	if !s.worthPreparing() {
		return
	}
	if d.prepared > 0 {
		d.prepared--
		return
	}
	d.prepared = Prepared - 1
	var ids [Prepared]uint32 // of groups, then of their hosts, origins, and documents
	read := uint32(0)
	for i := range ids {
		ids[i] = d.ready.Ahead(1 + i)
		g := s.groups.At(ids[i])
		read += g.slot + uint32(g.pace.last)
		read += d.ready.Read(ids[i]) + s.pacer.cooldowns.Read(ids[i]) + d.slotQueue.Read(ids[i])
	}
	for i, id := range ids {
		read += s.table.read(s.groups.At(id).slot)
		ids[i] = s.groups.At(id).rotation.head
		h := s.hosts.At(ids[i])
		read += h.docs + uint32(h.site.last)
	}
	for i, id := range ids {
		ids[i] = s.hosts.At(id).origins
		read += s.origins.At(ids[i]).queue
	}
	for _, id := range ids {
		read += s.docByID.Read(s.hash(s.idOf(s.docs.At(s.origins.At(id).queue))))
	}
	d.read += read // so that the compiler keeps the reads
}

// PrepareOffers prepares EnsureOrigin and Offer of so many candidates with these keys of origins and
// these IDs, at most Prepared.
func (s *Slots) PrepareOffers(keys, ids [][]byte) {
	if !s.worthPreparing() {
		return
	}
	var found [Prepared]uint32 // origins, then their hosts
	read := uint32(0)
	for i := range keys {
		found[i] = s.originByKey.Read(s.hash(keys[i]))
		read += s.docByID.Read(s.hash(ids[i]))
	}
	for i := range keys {
		o := s.origins.At(found[i])
		found[i] = o.host
		read += o.docs + uint32(s.text.Bytes(o.text, 1)[0])
	}
	s.readHosts(found[:len(keys)], read)
}

// PrepareDone prepares Done and End of these transactions, at most Prepared. There may be names of
// none among them.
func (s *Slots) PrepareDone(names []TransID) {
	if !s.worthPreparing() || s.table.transactions.Len() == 0 {
		return
	}
	var docs, hosts [Prepared]uint32 // docs has the transactions first
	read := uint32(0)
	for i, name := range names {
		if c := s.table.cell(name); c != nil {
			docs[i] = c.transaction
		}
	}
	for i := range names {
		tx := s.table.transactions.At(docs[i])
		docs[i], hosts[i] = tx.doc, tx.host
	}
	for i := range names {
		d := s.docs.At(docs[i])
		read += d.origin + uint32(s.text.Bytes(d.text, 1)[0])
	}
	for i := range names {
		d := s.docs.At(docs[i])
		read += s.origins.At(d.origin).docs + s.docByID.Read(s.hash(s.idOf(d)))
	}
	s.readHosts(hosts[:len(names)], read)
}

// readHosts reads hosts and their groups. It may be given 0, which is no host.
func (s *Slots) readHosts(ids []uint32, read uint32) {
	for i, id := range ids {
		h := s.hosts.At(id)
		ids[i] = h.group
		read += h.docs + uint32(h.site.last)
	}
	for _, id := range ids {
		g := s.groups.At(id)
		read += g.docs + uint32(g.pace.last) + s.dispatch.slotQueue.Read(id)
	}
	s.dispatch.read += read // so that the compiler keeps the reads
}
