package memory

import (
	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/internal/weburl"
)

// crawlMembers has the counts of crawls and lists of their documents. A document without a crawl
// takes no memory here.
type crawlMembers struct {
	*crawlstats.Stats
	members []member             // by document
	domains []*crawlstats.Domain // by number
	unused  []uint32             // unused numbers of domains
	lists   []lists              // by number of the crawl
}

// lists are a crawl's documents by state, linked in the order in which they entered the state.
type lists struct{ head, tail [crawlstats.States]uint32 }

// member is a document's membership in a crawl.
type member struct {
	domain     uint32 // 0: no member
	next, prev uint32 // in its list
	place      crawlstats.State
	purged     bool // it has ended because its crawl was stopped or has expired
}

func newCrawlMembers() crawlMembers {
	return crawlMembers{Stats: crawlstats.New(), domains: make([]*crawlstats.Domain, 1)}
}

// join makes a completed document a member of a crawl.
func (l *crawlMembers) join(doc uint32, id docindex.CrawlID, host string) {
	b := l.Open(id)
	for int(b.No) >= len(l.lists) {
		l.lists = append(l.lists, make([]lists, max(64, len(l.lists)/4))...)
	}
	for int(doc) >= len(l.members) {
		l.members = append(l.members, make([]member, max(64, len(l.members)/4))...)
	}
	d := l.Enter(b, weburl.Domain(host), 1)
	if d.No == 0 {
		l.number(d)
	}
	l.members[doc] = member{domain: d.No}
}

func (l *crawlMembers) number(d *crawlstats.Domain) {
	if n := len(l.unused); n > 0 {
		d.No, l.unused = l.unused[n-1], l.unused[:n-1]
		l.domains[d.No] = d
		return
	}
	d.No, l.domains = uint32(len(l.domains)), append(l.domains, d)
}

// domainOf returns the domain of the crawl of a document; nil: it is in none.
func (l *crawlMembers) domainOf(doc uint32) *crawlstats.Domain {
	if int(doc) >= len(l.members) || l.members[doc].domain == 0 {
		return nil
	}
	return l.domains[l.members[doc].domain]
}

// crawlOf returns the crawl of a document; nil: it is in none.
func (l *crawlMembers) crawlOf(doc uint32) *crawlstats.CrawlStats {
	if d := l.domainOf(doc); d != nil {
		return d.Crawl
	}
	return nil
}

// isStopped reports whether a document's crawl was stopped, so that the document is not to be
// handed out.
func (l *crawlMembers) isStopped(doc uint32) bool {
	b := l.crawlOf(doc)
	return b != nil && b.Stopped
}

// leave ends a document's membership.
func (l *crawlMembers) leave(doc uint32, priority int32) {
	d := l.domainOf(doc)
	if d == nil {
		return
	}
	l.move(doc, crawlstats.Completed, priority, 0)
	b := d.Crawl
	if l.members[doc].purged {
		b.Purged--
	}
	l.members[doc] = member{}
	if l.Leave(d, 1) {
		l.domains[d.No] = nil
		l.unused = append(l.unused, d.No)
	}
	l.Release(b)
}

// markPurged marks a member that ends because its crawl was stopped.
func (l *crawlMembers) markPurged(doc uint32) {
	if b := l.crawlOf(doc); b != nil && !l.members[doc].purged {
		l.members[doc].purged = true
		b.Purged++
	}
}

// move moves a member to the end of another list. The priority is that of its last schedule.
func (l *crawlMembers) move(doc uint32, to crawlstats.State, priority int32, now int64) {
	d := l.domainOf(doc)
	if d == nil || l.members[doc].place == to {
		return
	}
	m := &l.members[doc]
	was := m.place
	if was != crawlstats.Completed {
		l.unlink(d.Crawl, m)
	} else if m.purged {
		m.purged = false
		d.Crawl.Purged--
	}
	m.place = to
	if to != crawlstats.Completed {
		l.link(d.Crawl, doc, m)
	}
	l.Move(d, priority, was, to, 1, now)
}

// first returns the first document of a crawl in a state, or 0.
func (l *crawlMembers) first(b *crawlstats.CrawlStats, p crawlstats.State) uint32 {
	if int(b.No) >= len(l.lists) {
		return 0
	}
	return l.lists[b.No].head[p]
}

func (l *crawlMembers) link(b *crawlstats.CrawlStats, doc uint32, m *member) {
	s := &l.lists[b.No]
	m.next, m.prev = 0, s.tail[m.place]
	if m.prev == 0 {
		s.head[m.place] = doc
	} else {
		l.members[m.prev].next = doc
	}
	s.tail[m.place] = doc
}

func (l *crawlMembers) unlink(b *crawlstats.CrawlStats, m *member) {
	s := &l.lists[b.No]
	if m.prev == 0 {
		s.head[m.place] = m.next
	} else {
		l.members[m.prev].next = m.next
	}
	if m.next == 0 {
		s.tail[m.place] = m.prev
	} else {
		l.members[m.next].prev = m.prev
	}
	m.next, m.prev = 0, 0
}
