package disk

import (
	"encoding/binary"
	"math"

	"urlserver/docindex/internal/queuesched"
)

// appendTotals appends the row of a crawl: the counts of all its queues.
func appendTotals(dst []byte, crawl string, n queuesched.Counts) []byte {
	dst = appendText(dst, []byte(crawl))
	for _, v := range []uint64{n.Queues, n.Active, n.URLs[queuesched.Scheduled] + n.URLs[queuesched.InTransit],
		n.URLs[queuesched.Completed]} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func readTotals(b []byte) (crawl string, n queuesched.Counts, err error) {
	r := reader{b: b}
	crawl = string(r.text())
	n.Queues, n.Active = r.uint(), r.uint()
	n.URLs[queuesched.Scheduled], n.URLs[queuesched.Completed] = r.uint(), r.uint()
	if r.bad || n.Queues == 0 || n.Active > n.Queues || n.Queues > math.MaxUint32 {
		return "", n, errRow
	}
	return crawl, n, nil
}

// writeTotals writes the counts of the crawls that the txn has changed.
func (x *queueTable) writeTotals() {
	t, last := x.txn, uint32(math.MaxUint32)
	for _, id := range t.dirty {
		if no := x.sched.CrawlNo(id); no != last { // many queues are of one crawl
			x.cold.totals[no], last = struct{}{}, no
		}
	}
	for no := range x.cold.totals {
		t.key = append(t.key[:0], numberKey(totalRow, no)...)
		crawl, n := x.sched.CrawlAt(no)
		if n.Queues == 0 {
			t.b.Delete(t.key, nil)
			continue
		}
		t.value = appendTotals(t.value[:0], crawl, n)
		t.set()
	}
	clear(x.cold.totals)
}
