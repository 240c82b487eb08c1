package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	"urlserver/docindex"
	"urlserver/protocol"
)

// walkIndex is the doc index of a walk. It knows of each document whether the engine has it. It also
// knows when each host and each address was asked last.
type walkIndex struct {
	docs      map[string]*walkDoc      // by DOC_ID: those that have not ended
	back      []string                 // DOC_IDs that the engine has returned
	forgotten map[string]bool          // DOC_IDs that may end without an outcome, or with one
	asked     map[string]time.Duration // hosts and addresses
	froze     time.Duration            // when the engine stood still last
	counts    int                      // cancellations whose number of documents is not known yet
}

type walkDoc struct {
	url, spider, crawl string
	priority           int32
	out                bool // the engine has it
}

func newWalkIndex() walkIndex {
	return walkIndex{
		docs: map[string]*walkDoc{}, forgotten: map[string]bool{}, asked: map[string]time.Duration{},
	}
}

// addTo adds a document, or one that came back, to an answer of the index.
func (w *walk) addTo(b *docindex.Batch, host string) {
	var id string
	if n := len(w.docs.back); n > 0 && w.chance(50) {
		i := w.rng.IntN(n)
		id = w.docs.back[i]
		w.docs.back[i] = w.docs.back[n-1]
		w.docs.back = w.docs.back[:n-1]
	} else {
		w.given++
		id = fmt.Sprint(w.given)
		port := []string{"", "", ":8080", fmt.Sprint(":", 9000+w.rng.IntN(100))}[w.rng.IntN(4)]
		d := &walkDoc{url: fmt.Sprintf("http://%s%s/%d", host, port, w.given), priority: w.rng.Int32N(3)}
		d.spider = []string{"", "", "", "p1", "p2"}[w.rng.IntN(5)]
		d.crawl = fmt.Sprint("crawl", w.rng.IntN(4))
		w.docs.docs[id] = d
	}
	d := w.docs.docs[id]
	if d == nil {
		return // it was stopped meanwhile
	}
	d.out = true
	b.AddFor([]byte(id), []byte(d.url), d.priority, d.spider, d.crawl)
}

// takeOutcomes takes what the engine says of documents. Each ends once.
func (w *walk) takeOutcomes(out *Out) {
	for i := range out.Outcomes.Len() {
		id := string(out.Outcomes.At(i).DocID)
		if d := w.docs.docs[id]; (d == nil || !d.out) && !w.docs.forgotten[id] {
			w.t.Fatalf("at %v: document %s ends, and the engine does not have it", w.now, id)
		}
		delete(w.docs.docs, id)
	}
	for i := range out.Returns.Len() {
		id := string(out.Returns.At(i).DocID)
		d := w.docs.docs[id]
		if w.docs.forgotten[id] {
			continue
		}
		if d == nil || !d.out {
			w.t.Fatalf("at %v: document %s comes back, and the engine does not have it", w.now, id)
		}
		d.out = false
		w.docs.back = append(w.docs.back, id)
	}
}

// someDocs chooses documents, wherever they are.
func (w *walk) someDocs() (ids []string) {
	for range 1 + w.rng.IntN(10) {
		ids = append(ids, fmt.Sprint(1+w.rng.IntN(w.given+1)))
	}
	return ids
}

// crawlControl stops or forgets documents, or wants them back.
func (w *walk) crawlControl() {
	var o docindex.Outcomes
	what := w.rng.IntN(4)
	kinds := []docindex.Kind{docindex.Stopped, docindex.Expired}
	for _, id := range w.someDocs() {
		d := w.docs.docs[id]
		if d == nil {
			continue
		}
		if !d.out {
			if what != 2 { // the index has it
				delete(w.docs.docs, id)
				w.docs.forgotten[id] = true
			}
			continue
		}
		o.Add(docindex.Outcome{DocID: []byte(id), URL: []byte(d.url), Kind: kinds[w.rng.IntN(2)]})
		if what == 1 {
			w.docs.forgotten[id] = true
			delete(w.docs.docs, id)
		}
	}
	switch what {
	case 0:
		w.docs.counts++
		w.e.Cancel(&o, func(int) { w.docs.counts-- })
	case 1:
		w.e.Forget(&o)
	case 2:
		w.e.Recalled(&o)
	default:
		if w.chance(20) {
			w.e.RecallAll()
		}
	}
}

// request notes a request to a host, and checks that it keeps the gaps of its site and its address.
// Lines that waited while the engine stood still may leave with the first ones after that.
func (w *walk) request(what, host string, addr netip.Addr) {
	for _, of := range []string{host, addr.String()} {
		if last, ok := w.docs.asked[of]; ok && w.now < last+second-walkLate && w.now > w.docs.froze+2*second {
			w.t.Fatalf("at %v: %s goes to %s, and %s was asked at %v", w.now, what, host, of, last)
		}
		w.docs.asked[of] = max(w.docs.asked[of], w.now)
	}
}

// walkRequest is a document at a spider.
type walkRequest struct {
	trans   protocol.Trans
	host    string
	addr    netip.Addr
	written bool
}

// written notes that a line has left by now.
func (w *walk) written(r *walkRequest) {
	if !r.written {
		r.written = true
		w.docs.asked[r.host], w.docs.asked[r.addr.String()] = w.now, w.now
	}
}

const walkLate = 2 * lateAfter

// readLine takes a line of the engine to a spider.
func (w *walk) readLine(line []byte) *walkRequest {
	f, err := protocol.ParseFetch(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		w.t.Fatal(err)
	}
	if d := w.docs.docs[string(f.DocID)]; (d == nil || !d.out) && !w.docs.forgotten[string(f.DocID)] {
		w.t.Fatalf("at %v: document %s is sent, and the engine does not have it", w.now, f.DocID)
	}
	w.request("a document", walkHost(f.URL), f.Addr)
	trans, _ := protocol.ParseTrans(f.Trans)
	return &walkRequest{trans: trans, host: walkHost(f.URL), addr: f.Addr}
}

// walkHost returns the host of a URL.
func walkHost(url []byte) string {
	host := url[len("http://"):]
	return string(host[:bytes.IndexAny(host, ":/")])
}

// lost checks that the engine has no document that it does not hold.
func (w *walk) lost() {
	for id, d := range w.docs.docs {
		if d.out {
			w.t.Errorf("document %s (%+v) is lost", id, *d)
		}
	}
	if w.docs.counts != 0 {
		w.t.Errorf("%d cancellations were not counted", w.docs.counts)
	}
}
