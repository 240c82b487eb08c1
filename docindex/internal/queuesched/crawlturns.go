package queuesched

import (
	"time"

	"urlserver/internal/container/timeheap"
)

// crawlTurns decides which crawl goes next at a consumer: of those with a queue in their rings the
// one that has had the fewest pages by its weight (start-time fair queueing, Goyal, Vin and Cheng
// 1996). The zero value is ready.
type crawlTurns struct {
	order timeheap.Heap // crawls by pass; an ID is a crawl's number plus one
	now   int64         // pass of the crawl that went last
}

// onePage is how far a page of a crawl of weight 1 moves its pass.
const onePage = 1 << 20

// strideOf returns how far a page moves the pass of a crawl.
func strideOf(weight float64) int64 {
	return int64(max(1, min(onePage/weight, onePage<<16)))
}

// begin adds a crawl that has a queue in its rings. It cannot save turns up while it has none.
func (t *crawlTurns) begin(crawl uint32, pass *int64) {
	*pass = max(*pass, t.now)
	t.order.Set(crawl+1, time.Duration(*pass))
}

func (t *crawlTurns) end(crawl uint32) { t.order.Remove(crawl + 1) }

// charge moves the pass of a crawl by a page.
func (t *crawlTurns) charge(crawl uint32, pass *int64, stride int64) {
	t.now = max(t.now, *pass)
	*pass += stride
	if t.order.Has(crawl + 1) {
		t.order.Set(crawl+1, time.Duration(*pass))
	}
}

// next returns the crawl that goes next.
func (t *crawlTurns) next() (crawl uint32, ok bool) {
	id, _, ok := t.order.Min()
	return id - 1, ok
}

// SetWeight sets how many turns a crawl has, compared with others; 1 is usual.
func (d *Scheduler) SetWeight(crawlID string, weight float64) {
	if weight <= 0 || weight == 1 {
		delete(d.weights, crawlID)
		weight = 1
	} else {
		d.weights[crawlID] = weight
	}
	if c, ok := d.crawlNo[crawlID]; ok {
		d.crawls[c].stride = strideOf(weight)
	}
}

// nextForAnyCrawl is NextForCall for a call on all crawls. Crawls that have nothing for the call
// keep their turn.
func (d *Scheduler) nextForAnyCrawl(c *Call, now int64) (id uint32) {
	t := &d.turns[FrontierConsumer]
	d.passedOver = d.passedOver[:0]
	for id == 0 {
		d.refill(FrontierConsumer)
		crawl, ok := t.next()
		if !ok {
			break
		}
		d.cold.last[FrontierConsumer] = crawl
		if id = d.nextOf(c, crawl, now); id == 0 && t.order.Has(crawl+1) {
			d.passedOver = append(d.passedOver, crawl)
			t.end(crawl)
		}
	}
	for _, crawl := range d.passedOver {
		t.order.Set(crawl+1, time.Duration(d.crawls[crawl].pass[FrontierConsumer]))
	}
	return id
}
