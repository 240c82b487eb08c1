package sim

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/protocol"
)

// putLine returns a PUT of a document; page is the one that it is a link of, negative: none.
func (r *run) putLine(tag string, n uint32, page int64) string {
	raw, _ := r.world.url(n)
	more := ""
	if page >= 0 {
		more += fmt.Sprintf(",\"via\":\"%d\"", page)
	}
	if payload := payloadOf(n); payload != "" && r.sc.Payloads {
		more += fmt.Sprintf(",\"payload\":%q", base64.StdEncoding.EncodeToString([]byte(payload)))
	}
	return fmt.Sprintf("PUT %s {\"url\":%q,\"doc_id\":\"%d\"%s}\n", tag, raw, n, more)
}

// asksOf returns the tag of a PUT line and what it puts.
func (r *run) asksOf(line string) (tag string, one docindex.Put, ok bool) {
	word, object, ok := protocol.ParsePut([]byte(line))
	if !ok {
		return "", one, false
	}
	one, err := httpserver.ParsePut(object)
	if err != nil {
		r.oracle.wrong(RuleScanner, "PUT %q, %v", line, err)
	}
	return string(word), one, err == nil
}

func (c *conn) answer(tag string, result protocol.PutResult) {
	text := protocol.AppendPutAnswer(nil, []byte(tag), result, nil)
	c.run.trace.text(c.run.now, string(text))
}

const putAgain = time.Minute // a spider puts again what has no answer

// putBySpider lets spiders put a document until the index has it.
func (x *index) putBySpider(n uint32) {
	if x.state[n] != later {
		return
	}
	x.run.anySpider().send(x.run.putLine("p"+strconv.Itoa(int(n)), n, -1))
	x.run.after(putAgain, func() { x.putBySpider(n) })
}

// lines implements [docIndex].
func (x *index) lines(c *conn, lines []string) {
	for _, line := range lines {
		tag, one, ok := x.run.asksOf(line)
		if !ok {
			continue
		}
		n := numberOf(one.DocID)
		raw, _ := x.run.world.url(n)
		want := ""
		if x.run.sc.Payloads {
			want = payloadOf(n)
		}
		if tag != "p"+strconv.Itoa(int(n)) || string(one.URL) != raw || string(one.Payload) != want {
			x.run.oracle.wrong(RuleScanner, "PUT %q was taken for %+v", line, one)
			return
		}
		result := protocol.PutKnown
		if x.state[n] == later {
			x.put(n)
			result = protocol.PutNew
		}
		c.answer(tag, result)
	}
}

// lines implements [docIndex]: it does what the lines ask for, in their order.
func (x *scopedIndex) lines(c *conn, lines []string) {
	var p docindex.Puts
	var list []put
	var tags []string
	for _, line := range lines {
		if tag, crawl, ok := protocol.ParseCount([]byte(line)); ok {
			x.fileFor(c, tags, list, &p)
			tags, list = nil, nil
			p.Reset()
			x.count(c, string(tag), string(crawl))
			continue
		}
		tag, one, ok := x.run.asksOf(line)
		link, known := x.tags[tag]
		if ok = ok && known && p.Add(one) == nil; !ok {
			x.run.oracle.wrong(RuleScanner, "PUT %q", line)
			return
		}
		list, tags = append(list, link), append(tags, tag)
		delete(x.tags, tag)
	}
	x.fileFor(c, tags, list, &p)
}

// fileFor stores what a spider puts, and answers.
func (x *scopedIndex) fileFor(c *conn, tags []string, list []put, p *docindex.Puts) {
	if len(list) == 0 {
		return
	}
	x.file(list, p)
	for i, tag := range tags {
		c.answer(tag, map[docindex.Verdict]protocol.PutResult{docindex.New: protocol.PutNew,
			docindex.Same: protocol.PutKnown, docindex.Dropped: protocol.PutOutOfScope,
			docindex.Outside: protocol.PutOutOfScope, docindex.Refused: protocol.PutInvalid}[p.Verdict(i)])
	}
}

// count answers a COUNT as the daemon does, and shows the oracle the counts.
func (x *scopedIndex) count(c *conn, tag, crawl string) {
	n, err := docindex.ProgressOf(context.Background(), x.store, crawl)
	if err != nil {
		x.run.oracle.wrong(RuleAsked, "the store failed: %v", err)
	}
	x.run.oracle.counted(crawl, n)
	text := protocol.AppendCountAnswer(nil, []byte(tag), &protocol.Counts{Scheduled: n.Scheduled,
		InFlight: n.InFlight, Later: n.Later, Completed: n.Completed})
	c.run.trace.text(c.run.now, string(text))
}

// counted checks the counts of a crawl, or of all crawls if crawl is empty.
func (o *oracle) counted(crawl string, n docindex.Progress) {
	var completed, others, sent uint64
	for i := range o.crawls.docs {
		d := &o.crawls.docs[i]
		switch {
		case !d.stored || crawl != "" && crawl != crawlName(i%o.crawls.sc.Crawls):
		case d.ended:
			completed++
		default:
			others++
			if o.docs[i].tx != nil {
				sent++
			}
		}
	}
	if n.Completed != completed || n.Scheduled+n.InFlight+n.Later != others || n.InFlight < sent {
		o.wrong(RuleAsked, "crawl %q is counted as %+v; %d have ended, %d have not, of which spiders have %d", crawl, n,
			completed, others, sent)
	}
}

// sayCount asks how far a crawl is, or all.
func (x *scopedIndex) sayCount(s *spider) {
	crawl := ""
	if c := x.run.rng.IntN(x.run.sc.Crawls + 1); c < x.run.sc.Crawls {
		crawl = crawlName(c)
	}
	s.send(strings.TrimSuffix("COUNT c "+crawl, " ") + "\n")
}
