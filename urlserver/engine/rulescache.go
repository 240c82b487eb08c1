package engine

import (
	"hash/maphash"
	"slices"
	"time"

	"urlserver/internal/robots"
)

// The rules of all robots.txt together take at most robots.memory. When more come, those that were
// not used for longest are dropped, and fetched again once a document needs them: a request to the
// host, under its pace.
//
// Rules may be dropped before any document was judged by them, where the hosts at work need more
// than the budget. So that no fetch is in vain, the engine has the documents that wait for it
// (Fetch.Targets) judged when the answer arrives, and remembers the verdicts.

const (
	maxTargets   = 16      // documents that a fetch is to judge
	targetBytes  = 4 << 10 // of their targets together, where there are several
	verdictsFrom = 4 << 10 // bytes of rules from which on their verdicts are remembered; those of costly rules are, too
)

// rulesCache has the origins whose robots.txt rules are kept, in the order of their last use, and
// remembered verdicts.
type rulesCache struct {
	seed           maphash.Seed
	bytes          int
	oldest, newest uint32 // origins
	remembered     map[uint32][]verdict
}

// verdict is whether a document is allowed. A hash of its URL identifies the document.
type verdict struct {
	url     uint64
	allowed bool
}

// cachedRules is an origin's entry in the rules cache.
type cachedRules struct {
	older, newer uint32
	size         uint32 // 0: it has no rules there
}

func newRulesCache() rulesCache {
	return rulesCache{seed: maphash.MakeSeed(), remembered: map[uint32][]verdict{}}
}

// cacheRules puts an origin's current rules into the cache.
func (r *robotsFetches) cacheRules(id uint32) {
	r.uncacheRules(id)
	size := r.entry(id).Rules().Size()
	if size == 0 {
		return
	}
	r.origins.At(id).size = uint32(size)
	r.cache.bytes += size
	r.linkNewest(id)
}

// trimCache drops rules until the others fit into robots.memory.
func (e *Engine) trimCache(budget *int) {
	for ; *budget > 0 && e.robots.cache.bytes > e.cfg.Robots.Memory && !faulty(FaultMemory); *budget-- {
		e.evict(e.robots.cache.oldest)
	}
}

// linkNewest makes an origin's rules the last to be dropped.
func (r *robotsFetches) linkNewest(id uint32) {
	o := r.origins.At(id)
	o.older, o.newer = r.cache.newest, 0
	if o.older != 0 {
		r.origins.At(o.older).newer = id
	} else {
		r.cache.oldest = id
	}
	r.cache.newest = id
}

func (r *robotsFetches) unlink(id uint32) {
	o := r.origins.At(id)
	if o.older != 0 {
		r.origins.At(o.older).newer = o.newer
	} else {
		r.cache.oldest = o.newer
	}
	if o.newer != 0 {
		r.origins.At(o.newer).older = o.older
	} else {
		r.cache.newest = o.older
	}
	o.older, o.newer = 0, 0
}

// uncacheRules removes an origin's rules from the cache.
func (r *robotsFetches) uncacheRules(id uint32) {
	if o := r.origins.At(id); o.size > 0 {
		r.unlink(id)
		r.cache.bytes -= int(o.size)
		o.size = 0
	}
}

// evict drops an origin's rules. If they have judged no document yet, they judge the next one before.
func (e *Engine) evict(id uint32) {
	o := e.robots.entry(id)
	if o.size == 0 { // it was for another user agent, and is dropped by now
		return
	}
	if o.unused && len(e.robots.cache.remembered[id]) == 0 {
		e.slots.Origin(id).Queued(1, func(_, url []byte) bool {
			if allowed, known := o.Rules().AllowedWithin(target(url), cheapWork); known {
				e.robots.remember(id, url, allowed)
			}
			return true
		})
	}
	e.robots.uncacheRules(id)
	o.Entry = o.WithoutRules()
	e.stats.RobotsDropped++
}

func (r *robotsFetches) hashOf(url []byte) uint64 { return maphash.Bytes(r.cache.seed, url) }

func (r *robotsFetches) remember(id uint32, url []byte, allowed bool) {
	r.cache.remembered[id] = append(r.cache.remembered[id], verdict{r.hashOf(url), allowed})
}

// rememberAll remembers verdicts on the first of these documents, instead of earlier ones.
func (r *robotsFetches) rememberAll(id uint32, urls [][]byte, allowed []bool) {
	delete(r.cache.remembered, id)
	for i, ok := range allowed {
		r.remember(id, urls[i], ok)
	}
}

// takeVerdict returns and removes the remembered verdict on a document, if there is one.
func (r *robotsFetches) takeVerdict(id uint32, url []byte) (allowed, ok bool) {
	list := r.cache.remembered[id]
	if len(list) == 0 {
		return false, false
	}
	hash := r.hashOf(url)
	for i, v := range list {
		if v.url != hash {
			continue
		}
		list[i] = list[len(list)-1]
		if r.cache.remembered[id] = list[:len(list)-1]; len(list) == 1 {
			delete(r.cache.remembered, id)
		}
		return v.allowed, true
	}
	return false, false
}

// waiting copies the URLs of documents that wait at an origin, the next one first.
func (e *Engine) waiting(id uint32) (urls [][]byte) {
	var text []byte
	var ends []int
	e.slots.Origin(id).Queued(maxTargets, func(_, url []byte) bool {
		if len(ends) > 0 && len(text)+len(url) > targetBytes {
			return false
		}
		text = append(text, url...)
		ends = append(ends, len(text))
		return true
	})
	from := 0
	for _, end := range ends {
		urls, from = append(urls, text[from:end:end]), end
	}
	return urls
}

// targets returns the paths and queries of URLs.
func targets(urls [][]byte) [][]byte {
	list := make([][]byte, len(urls))
	for i, url := range urls {
		list[i] = target(url)
	}
	return list
}

// isDear reports whether a verdict by these rules on one of these URLs may be costly.
func isDear(rules *robots.Rules, urls [][]byte) bool {
	return slices.ContainsFunc(urls, func(url []byte) bool { return rules.Len()*len(url) > cheapWork })
}

// applyRobots puts a robots.txt that arrived at the given time in force for an origin. It was
// fetched for these documents.
func (e *Engine) applyRobots(id uint32, final robots.Response, urls [][]byte, at time.Duration) {
	final = e.robots.policy.Read(final, targets(urls)...)
	entry := e.robots.entry(id)
	failures := entry.failures
	e.robots.uncacheRules(id)
	*entry = origin{Entry: e.robots.policy.Settle(entry.Entry, at, final), unused: true, agent: e.robots.agent}
	if entry.Unreachable() {
		entry.failures = failures + 1
	}
	delete(e.robots.cache.remembered, id)
	if entry.Rules().Size() >= verdictsFrom || isDear(entry.Rules(), urls) {
		e.robots.rememberAll(id, urls, final.Verdicts())
	}
	e.robots.cacheRules(id)
}

// usable reports whether the entry may be used for a document now. Each answer to a request may be
// used once, however old: if a group may be requested more rarely than its robots.txt expires, only
// robots.txt would be fetched otherwise.
func (o *origin) usable(now time.Duration) bool {
	return o.unused && !o.fromNote || o.Fresh(now) || faulty(FaultOld) && o.Rules() != nil
}
