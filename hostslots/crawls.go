package hostslots

import "urlserver/internal/container/slab"

// crawlCounts counts the documents of each crawl by host and by group, if Config.CountDocs is set.
// With Config.NameCrawls alone it only has the names of the documents' crawls. When a host changes
// groups, its counts are moved to the new group. Documents without a crawl are not counted.
type crawlCounts struct {
	enabled bool
	counted bool    // false: only the names are kept
	crawls  []crawl // by number; 0 is none
	byName  map[string]uint16
	free    []uint16 // numbers
	counts  slab.Slab[crawlCount]
	byKey   map[countKey]uint32 // with crawl 0: the first count of a host or group
	changed []uint32            // groups whose number of documents has changed since ChangedGroups
}

const (
	maxCrawls    = 1<<16 - 1 // with a number at a time; documents of further ones count as of none
	maxCrawlName = 255       // bytes; documents of crawls with longer names count as of none
)

// crawl has its number while documents of it are held.
type crawl struct {
	name string
	docs int
}

// countKey names the count of a crawl's documents of a host or group.
type countKey struct {
	owner   uint32
	crawl   uint16
	ofGroup bool
}

func hostCount(hostID uint32, crawl uint16) countKey {
	return countKey{owner: hostID, crawl: crawl}
}

func groupCount(groupID uint32, crawl uint16) countKey {
	return countKey{owner: groupID, crawl: crawl, ofGroup: true}
}

// first is the key of the owner's first count.
func (k countKey) first() countKey { return countKey{owner: k.owner, ofGroup: k.ofGroup} }

// crawlCount exists while it is not 0.
type crawlCount struct {
	key  countKey
	docs uint32
	link link // in the counts of its owner
}

func (c *crawlCounts) init(counted, named bool) {
	c.enabled, c.counted = counted || named, counted
	c.crawls = make([]crawl, 1)
	c.byName = map[string]uint16{}
	c.byKey = map[countKey]uint32{}
}

// number returns the number of a crawl, and gives it one if it has none; 0: its documents are not
// counted. The caller must add a document of the crawl, since only the removal of its last document
// frees the number.
func (c *crawlCounts) number(name []byte) uint16 {
	if len(name) == 0 || len(name) > maxCrawlName || !c.enabled {
		return 0
	}
	no, known := c.byName[string(name)]
	switch n := len(c.free); {
	case known:
		return no
	case n > 0:
		no, c.free = c.free[n-1], c.free[:n-1]
	case len(c.crawls) > maxCrawls:
		return 0
	default:
		no = uint16(len(c.crawls))
		c.crawls = append(c.crawls, crawl{})
	}
	c.crawls[no].name = string(name)
	c.byName[c.crawls[no].name] = no
	return no
}

// add adds n, 1 or -1, to the count of a crawl's documents of a host, and of its group if it has
// one.
func (c *crawlCounts) add(hostID, groupID uint32, no uint16, n int) {
	if no == 0 {
		return
	}
	if c.counted {
		c.addTo(hostCount(hostID, no), n)
	}
	if c.counted && groupID != 0 {
		c.addTo(groupCount(groupID, no), n)
	}
	of := &c.crawls[no]
	if of.docs += n; of.docs == 0 {
		delete(c.byName, of.name)
		of.name = ""
		c.free = append(c.free, no)
	}
}

// join adds the counts of a host to those of a group.
func (c *crawlCounts) join(hostID, groupID uint32) { c.move(hostID, groupID, 1) }

// leave subtracts the counts of a host from those of its group.
func (c *crawlCounts) leave(hostID, groupID uint32) { c.move(hostID, groupID, -1) }

func (c *crawlCounts) move(hostID, groupID uint32, sign int) {
	for id := c.byKey[hostCount(hostID, 0)]; id != 0; {
		of := c.counts.At(id)
		c.addTo(groupCount(groupID, of.key.crawl), sign*int(of.docs))
		id = of.link.next
	}
}

func (c *crawlCounts) addTo(key countKey, n int) {
	id := c.byKey[key]
	if id == 0 {
		id = c.newCount(key)
	}
	of := c.counts.At(id)
	if of.docs += uint32(n); of.docs == 0 {
		c.dropCount(id)
	}
}

func (c *crawlCounts) newCount(key countKey) uint32 {
	id, first := c.counts.New(), c.byKey[key.first()]
	*c.counts.At(id) = crawlCount{key: key, link: link{next: first}}
	if first != 0 {
		c.counts.At(first).link.prev = id
	}
	c.byKey[key.first()], c.byKey[key] = id, id
	return id
}

func (c *crawlCounts) dropCount(id uint32) {
	of := *c.counts.At(id)
	switch {
	case of.link.prev != 0:
		c.counts.At(of.link.prev).link.next = of.link.next
	case of.link.next != 0:
		c.byKey[of.key.first()] = of.link.next
	default:
		delete(c.byKey, of.key.first())
	}
	if of.link.next != 0 {
		c.counts.At(of.link.next).link.prev = of.link.prev
	}
	delete(c.byKey, of.key)
	c.counts.Free(id)
}

// each calls yield with the name of each crawl of a group and the number of its documents there,
// for no more than most crawls.
func (c *crawlCounts) each(groupID uint32, most int, yield func(name string, docs int)) {
	for id := c.byKey[groupCount(groupID, 0)]; id != 0 && most > 0; most-- {
		of := c.counts.At(id)
		yield(c.crawls[of.key.crawl].name, int(of.docs))
		id = of.link.next
	}
}
