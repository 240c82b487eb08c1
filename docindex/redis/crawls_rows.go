package redis

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// Counts of a crawl, in the order in which the script rows returns them.
const (
	countLined = iota
	countAtSlots
	countAtCalls
	countEnded
	countPurged
	countUntold // ended because the crawl was stopped, and not reported yet
	countDropped
	countSent
	countExpired
	counts

	rowParts = 1 + counts + 7
)

// part is one shard's record of a crawl.
type part struct {
	counts     [counts]uint64
	till, said int64 // expiry (s), and the place of the put that set it; said 0: no put of this shard set it
	round      uint64
	quiet      string // since when nothing is open here (ms); "": something is open, or the end was handled
	refused    bool
	levels     []rueidis.RedisMessage // pairs of "PRIORITY DOMAIN" and pending documents
	number     string                 // of the crawl in the shard
}

// size returns how many documents the shard has of the crawl.
func (p *part) size() uint64 {
	return p.counts[countLined] + p.counts[countAtSlots] + p.counts[countAtCalls] + p.counts[countEnded]
}

// row is a crawl, summed over all shards.
type row struct {
	docindex.CrawlID
	name       string
	why        string // the outcome that it was stopped with; "": it was not stopped
	sum        [counts]uint64
	till, said int64 // of the part with the latest put that set them
	parts      [shards]part
}

func (r *row) kind() docindex.Kind {
	why, _ := strconv.ParseUint(r.why, 10, 8)
	return docindex.Kind(why)
}

func (r *row) pending() uint64 { return r.sum[countLined] + r.sum[countAtSlots] }

// open returns how many documents are not completed.
func (r *row) open() uint64 { return r.pending() + r.sum[countAtCalls] }

// size returns how many documents the crawl has.
func (r *row) size() uint64 { return r.open() + r.sum[countEnded] }

// exists reports whether the crawl has documents or was stopped. Shards soon delete a crawl that
// does not exist.
func (r *row) exists() bool { return r.size() > 0 || r.why != "" }

// done returns how many documents are completed and were not purged.
func (r *row) done() uint64 { return r.sum[countEnded] - min(r.sum[countPurged], r.sum[countEnded]) }

// round returns the crawl's epoch. It changes whenever a shard without open documents gets one.
func (r *row) round() (sum uint64) {
	for i := range r.parts {
		sum += r.parts[i].round
	}
	return sum
}

func (r *row) state() docindex.CrawlState {
	return docindex.CrawlState{
		CrawlID: r.CrawlID, Scheduled: r.sum[countLined], AtSlots: r.sum[countAtSlots],
		AtClients: r.sum[countAtCalls], Done: r.done(),
		Purged: r.sum[countPurged], Dropped: r.sum[countDropped], Expires: r.till, Stopped: r.why != "", Why: r.kind(),
	}
}

func (r *row) tally() docindex.CrawlCounts {
	return docindex.CrawlCounts{
		CrawlID: r.CrawlID, Pending: r.pending(), InTransit: r.sum[countAtCalls], Done: r.done(),
		Sent: r.sum[countSent], Purged: r.sum[countPurged],
		Expired: min(r.sum[countExpired], r.sum[countPurged]), Dropped: r.sum[countDropped],
	}
}

// add adds one shard's answer about the crawl.
func (r *row) add(shard int, told []rueidis.RedisMessage) {
	p := &r.parts[shard]
	for i := range p.counts {
		p.counts[i] = uint64(max(0, number(told[1+i])))
		r.sum[i] += p.counts[i]
	}
	rest := told[1+counts:]
	p.till, p.said, p.round, p.quiet, p.levels = number(rest[0]), number(rest[1]), uint64(number(rest[2])),
		text(rest[4]), list(rest[5])
	p.number = text(rest[6])
	if p.said > r.said {
		r.till, r.said = p.till, p.said
	}
	if why := text(rest[3]); why != "" {
		r.why, p.refused = why, true
	}
}

// rowsOf reads crawls from all shards. A name that no shard knows gives an empty row. If deep is
// true, it reads the levels, too.
func (s *Store) rowsOf(ctx context.Context, names []string, deep bool) ([]row, error) {
	if len(names) == 0 {
		return nil, nil
	}
	answers, err := s.everywhere(ctx, rowsScript, append([]string{flag(deep), decimal(int64(len(names)))}, names...)...)
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(names))
	for _, a := range answers {
		page, err := pageOf(&a)
		if err != nil || len(page) != len(names) {
			return nil, errStrange
		}
		for i, told := range page {
			r := &rows[i]
			r.name = names[i]
			r.CrawlID, _ = crawlOfName(r.name)
			r.add(a.shard, list(told))
		}
	}
	return rows, nil
}

// pageOf returns the crawls in a shard's answer.
func pageOf(a *answer) ([]rueidis.RedisMessage, error) {
	parts := list(a.value)
	if len(parts) != 2 {
		return nil, errStrange
	}
	page := list(parts[0])
	for _, told := range page {
		if len(list(told)) != rowParts {
			return nil, errStrange
		}
	}
	return page, nil
}

// crawlPages reads the crawls of all shards in the order of their names.
type crawlPages struct {
	s      *Store
	most   int // of one page
	pages  [shards][]rueidis.RedisMessage
	behind [shards]string // last name that was read
	ended  [shards]bool
	all    [counts]uint64 // of all crawls, as of when the first page was read
	begun  bool
}

// next returns the next crawl, or nil at the end.
func (p *crawlPages) next(ctx context.Context) (*row, error) {
	for {
		if err := p.fill(ctx); err != nil {
			return nil, err
		}
		if r, err := p.first(); r == nil || err != nil || r.exists() {
			return r, err
		}
	}
}

// first removes the first crawl by name from the pages and returns it.
func (p *crawlPages) first() (*row, error) {
	var r row
	found := false
	for _, page := range p.pages {
		if len(page) == 0 {
			continue
		}
		if name := nameIn(page[0]); !found || name < r.name {
			r.name, found = name, true
		}
	}
	if !found {
		return nil, nil
	}
	for shard, page := range p.pages {
		if len(page) > 0 && nameIn(page[0]) == r.name {
			r.add(shard, list(page[0]))
			p.pages[shard] = page[1:]
		}
	}
	id, ok := crawlOfName(r.name)
	if !ok {
		return nil, errStrange
	}
	r.CrawlID = id
	return &r, nil
}

func nameIn(told rueidis.RedisMessage) string { return text(list(told)[0]) }

// fill reads the next page of each shard whose page is empty.
func (p *crawlPages) fill(ctx context.Context) error {
	var ops []op
	for shard := range p.pages {
		if len(p.pages[shard]) == 0 && !p.ended[shard] {
			ops = append(ops, op{shard, rowsScript, []string{"", "0", p.behind[shard], "", decimal(int64(p.most))}})
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	answers, err := p.s.all(ctx, ops)
	if err != nil {
		return err
	}
	for _, a := range answers {
		page, err := pageOf(&a)
		if err != nil {
			return err
		}
		p.pages[a.shard], p.ended[a.shard] = page, len(page) < p.most
		if len(page) > 0 {
			p.behind[a.shard] = strings.Clone(nameIn(page[len(page)-1]))
		}
		if !p.begun {
			p.addTotals(list(list(a.value)[1]))
		}
	}
	p.begun = true
	return nil
}

// totalNames are the field names of a row's counts, in their order.
const totalNames = "lscepuxnz"

func (p *crawlPages) addTotals(pairs []rueidis.RedisMessage) {
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		if i := strings.Index(totalNames, text(pairs[0])); i >= 0 {
			p.all[i] += uint64(max(0, number(pairs[1])))
		}
	}
}
