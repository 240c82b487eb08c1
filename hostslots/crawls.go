package hostslots

import "urlserver/internal/container/arena"

// Documents may be of crawls. Where the caller takes that (Config.Counted), they are counted by crawl: of each host, which takes
// its counts along when it moves, and of each group. What is of no crawl costs nothing of this.

const (
	maxCrawls    = 1<<16 - 1 // told apart at a time; documents of further ones count as of none, as long as they are held
	maxCrawlName = 255       // bytes; so do those of longer names
	ofCrawl      = 1 << 15   // in the length of a document's URL: the crawl's number follows
)

const _ = uint(ofCrawl - 1 - arena.MaxLen)

// crawl has its number while documents of it are held.
type crawl struct {
	name string
	docs int
}

// shareKey names how many documents of a crawl a host, or a group, has.
type shareKey struct {
	owner   uint32
	crawl   uint16
	ofGroup bool
}

func hostShare(hostID uint32, crawl uint16) shareKey { return shareKey{owner: hostID, crawl: crawl} }

func groupShare(groupID uint32, crawl uint16) shareKey {
	return shareKey{owner: groupID, crawl: crawl, ofGroup: true}
}

// share is there while it has documents.
type share struct {
	key  shareKey
	docs uint32
	link link // among its owner's
}

// crawlFor returns the number of a crawl, which is taken once a document of it is counted; 0: it is not told apart.
func (s *Slots) crawlFor(name []byte) uint16 {
	if len(name) == 0 || len(name) > maxCrawlName || !s.cfg.CountDocs {
		return 0
	}
	no, known := s.crawlByName[string(name)]
	switch n := len(s.freeCrawls); {
	case known:
		return no
	case n > 0:
		no, s.freeCrawls = s.freeCrawls[n-1], s.freeCrawls[:n-1]
	case len(s.crawls) > maxCrawls:
		return 0
	default:
		no = uint16(len(s.crawls))
		s.crawls = append(s.crawls, crawl{})
	}
	s.crawls[no].name = string(name)
	s.crawlByName[s.crawls[no].name] = no
	return no
}

// countCrawl adds n, 1 or -1, to a crawl's documents of a host.
func (s *Slots) countCrawl(hostID uint32, no uint16, n int) {
	if no == 0 {
		return
	}
	s.addShare(hostShare(hostID, no), n)
	if group := s.hosts.At(hostID).group; group != 0 {
		s.addShare(groupShare(group, no), n)
	}
	c := &s.crawls[no]
	if c.docs += n; c.docs == 0 {
		delete(s.crawlByName, c.name)
		c.name = ""
		s.freeCrawls = append(s.freeCrawls, no)
	}
}

// moveShares adds a host's documents of crawls to those of its group, or, where sign is -1, takes them off.
func (s *Slots) moveShares(hostID uint32, sign int) {
	for id := s.shareByKey[hostShare(hostID, 0)]; id != 0; {
		sh := s.shares.At(id)
		s.addShare(groupShare(s.hosts.At(hostID).group, sh.key.crawl), sign*int(sh.docs))
		id = sh.link.next
	}
}

func (s *Slots) addShare(key shareKey, n int) {
	id := s.shareByKey[key]
	if id == 0 {
		id = s.newShare(key)
	}
	sh := s.shares.At(id)
	if sh.docs += uint32(n); sh.docs == 0 {
		s.dropShare(id)
	}
}

func (s *Slots) newShare(key shareKey) uint32 {
	id, all := s.shares.New(), shareKey{owner: key.owner, ofGroup: key.ofGroup}
	first := s.shareByKey[all]
	*s.shares.At(id) = share{key: key, link: link{next: first}}
	if first != 0 {
		s.shares.At(first).link.prev = id
	}
	s.shareByKey[all], s.shareByKey[key] = id, id
	return id
}

func (s *Slots) dropShare(id uint32) {
	sh := *s.shares.At(id)
	all := shareKey{owner: sh.key.owner, ofGroup: sh.key.ofGroup}
	switch {
	case sh.link.prev != 0:
		s.shares.At(sh.link.prev).link.next = sh.link.next
	case sh.link.next != 0:
		s.shareByKey[all] = sh.link.next
	default:
		delete(s.shareByKey, all)
	}
	if sh.link.next != 0 {
		s.shares.At(sh.link.next).link.prev = sh.link.prev
	}
	delete(s.shareByKey, sh.key)
	s.shares.Free(id)
}

// Crawls calls yield with crawls that documents of a group are of, at most so many, each once, and how many those are.
func (s *Slots) eachCrawl(groupID uint32, most int, yield func(name string, docs int)) {
	for id := s.shareByKey[groupShare(groupID, 0)]; id != 0 && most > 0; most-- {
		sh := s.shares.At(id)
		yield(s.crawls[sh.key.crawl].name, int(sh.docs))
		id = sh.link.next
	}
}
