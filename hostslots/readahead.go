package hostslots

// ReadAhead is the number of documents, or groups, whose records are read ahead together.
//
// To read ahead is to read the records that the next calls begin with, so that the processor has
// them in its cache by then. The processor waits for memory for all of them together. Without that
// it would wait several times for each document, as the origin names the host, the host its group,
// and that the slot.
const ReadAhead = 16

// With fewer groups nothing is read ahead: their records stay in the processor's cache.
const fewGroups = 1 << 12

func (s *Slots) worthReadingAhead() bool { return s.groups.Len() >= fewGroups && s.docs.Len() > 0 }

// readNextAhead reads, once for so many calls of Next, the records of the groups that come next.
func (s *Slots) readNextAhead() {
	d := &s.dispatch
	if !s.worthReadingAhead() {
		return
	}
	if d.readAhead > 0 {
		d.readAhead--
		return
	}
	d.readAhead = ReadAhead - 1
	var ids [ReadAhead]uint32 // of groups, then of their hosts, origins, and documents
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
		ids[i] = s.hosts.At(id).first
		read += s.origins.At(ids[i]).queue
	}
	for _, id := range ids {
		read += s.docByID.Read(s.hash(s.idOf(s.docs.At(s.origins.At(id).queue))))
	}
	d.read += read // so that the compiler keeps the reads
}

// ReadOffersAhead reads what EnsureOrigin and Offer need of candidates, at most ReadAhead of them:
// names has the names of their hosts, ids has their IDs. It changes nothing.
func (s *Slots) ReadOffersAhead(names, ids [][]byte) {
	if !s.worthReadingAhead() {
		return
	}
	var found [ReadAhead]uint32 // hashes of names, then hosts
	read := uint32(0)
	for i := range names {
		found[i] = s.hash(trimDot(names[i]))
		read += s.hostByName.Read(found[i]) + s.docByID.Read(s.hash(ids[i]))
	}
	for i := range names {
		found[i] = s.hostByName.Find(found[i], func(uint32) bool { return true }) // by its hash alone
	}
	for i := range names {
		h := s.hosts.At(found[i])
		read += s.origins.At(h.origins).docs + uint32(s.text.Bytes(h.text, 1)[0])
	}
	s.readHosts(found[:len(names)], read)
}

// ReadDoneAhead reads what Done and End need of these transactions, at most ReadAhead of them. A name
// may be unknown or stale. It changes nothing.
func (s *Slots) ReadDoneAhead(names []TransID) {
	if !s.worthReadingAhead() || s.table.transactions.Len() == 0 {
		return
	}
	var docs, hosts [ReadAhead]uint32 // docs has the transactions first
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
