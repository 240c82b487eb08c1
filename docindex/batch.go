package docindex

import (
	"bytes"
	"time"

	"urlserver/internal/weburl"
)

// Candidate is a document that the index offers. Its slices alias the [Batch] and are valid until
// the Batch is Reset.
type Candidate struct {
	DocID, URL []byte
	Priority   int32  // higher first
	Spider     []byte // the spiderid that it is for; empty: any
	Crawl      []byte // its crawl ID; empty: DEFAULT, or not known
	Payload    []byte // for the spider that gets it; empty: none
	Kind       Kind   // of EndedAt: its outcome
}

// Batch holds candidates in one growing buffer, so that a thousand of them cost no allocation once
// it has grown. The zero value is ready. It is not safe for concurrent use.
type Batch struct {
	buf     []byte
	good    []offered
	ended   []offeredEnd
	skipped int
}

// place is where DOC_ID and URL of a document are in a buffer, one after the other.
type place struct {
	at     int
	idLen  int32
	urlLen int32
}

// offered is a candidate. Its spiderid, crawl and payload follow its URL in the buffer.
type offered struct {
	place
	spiderLen int32
	crawlLen  int32
	priority  int32
	loadLen   int32
}

// offeredEnd is a document that is not to be sent. Its crawl follows its URL in the buffer.
type offeredEnd struct {
	place
	crawlLen int32
	kind     Kind
}

func (p place) in(buf []byte) (id, url []byte) {
	mid, end := p.at+int(p.idLen), p.at+int(p.idLen)+int(p.urlLen)
	return buf[p.at:mid:mid], buf[mid:end:end]
}

// Reset empties b and keeps its memory. What At returned before is no longer valid.
func (b *Batch) Reset() {
	b.buf, b.good, b.ended, b.skipped = b.buf[:0], b.good[:0], b.ended[:0], 0
}

// Add appends a copy of a candidate.
func (b *Batch) Add(id, url []byte, priority int32) {
	b.AddFor(id, url, priority, "", "")
}

// AddFor is Add for a candidate of a crawl that is for the spiders of a spiderid.
func (b *Batch) AddFor(id, url []byte, priority int32, spider, crawl string) {
	b.good = append(b.good, offered{
		place: b.put(id, url), spiderLen: int32(len(spider)), crawlLen: int32(len(crawl)), priority: priority,
	})
	b.buf = append(append(b.buf, spider...), crawl...)
}

// AttachPayload adds a copy of a payload to the candidate that was added last.
func (b *Batch) AttachPayload(payload []byte) {
	if len(payload) > 0 {
		b.good[len(b.good)-1].loadLen = int32(len(payload))
		b.buf = append(b.buf, payload...)
	}
}

// AddInvalid appends a copy of a document that the index offered and that cannot be used; url may
// be anything, or empty. The caller of Candidates reports the outcome [Invalid] for it.
func (b *Batch) AddInvalid(id, url []byte) { b.AddEnded(Candidate{DocID: id, URL: url, Kind: Invalid}) }

// AddEnded appends a copy of a document that the index handed out and that is not to be sent. The
// caller of Candidates reports the outcome c.Kind for it.
func (b *Batch) AddEnded(c Candidate) {
	b.ended = append(b.ended, offeredEnd{b.put(c.DocID, c.URL), int32(len(c.Crawl)), c.Kind})
	b.buf = append(b.buf, c.Crawl...)
}

// Skip counts a candidate of the index without a usable DOC_ID, for which no outcome can be reported.
func (b *Batch) Skip() { b.skipped++ }

// Len returns the number of candidates.
func (b *Batch) Len() int { return len(b.good) }

// EndedLen returns the number of documents that are not to be sent.
func (b *Batch) EndedLen() int { return len(b.ended) }

// Skipped returns how often Skip was called.
func (b *Batch) Skipped() int { return b.skipped }

// At returns candidate i, from 0 in the order of Add.
func (b *Batch) At(i int) Candidate {
	p := b.good[i]
	id, url := p.in(b.buf)
	c := Candidate{DocID: id, URL: url, Priority: p.priority}
	if from := p.at + len(id) + len(url); p.spiderLen+p.crawlLen+p.loadLen > 0 {
		mid, end := from+int(p.spiderLen), from+int(p.spiderLen)+int(p.crawlLen)
		c.Spider, c.Crawl = b.buf[from:mid:mid], b.buf[mid:end:end]
		c.Payload = b.buf[end : end+int(p.loadLen) : end+int(p.loadLen)]
	}
	return c
}

// EndedAt returns document i of those that are not to be sent, from 0 in the order of AddInvalid and
// AddEnded. DocID, URL, Crawl and Kind are set.
func (b *Batch) EndedAt(i int) Candidate {
	e := b.ended[i]
	id, url := e.in(b.buf)
	c := Candidate{DocID: id, URL: url, Kind: e.kind}
	if from := e.at + len(id) + len(url); e.crawlLen > 0 {
		c.Crawl = b.buf[from : from+int(e.crawlLen) : from+int(e.crawlLen)]
	}
	return c
}

func (b *Batch) put(id, url []byte) place {
	p := place{at: len(b.buf), idLen: int32(len(id)), urlLen: int32(len(url))}
	b.buf = append(append(b.buf, id...), url...)
	return p
}

// Outcome is how a document ended. Its slices alias the [Outcomes] that it is from.
type Outcome struct {
	DocID, URL []byte
	Kind       Kind
	Status     int           // HTTP status of the last fetch; 0: no answer
	NoStatus   bool          // Status is 0 because nobody reported it
	Change     Change        // of the content
	Attempts   int           // how often it was sent to a spider
	At         time.Time     // when it ended
	Pause      time.Duration // its host is to be left alone for that long; 0: not known
	Gap        time.Duration // that its host wants between two requests; 0: no special one
	Again      int64         // fetch it again from this second since 1970 on; 0: do not
	Metadata   []byte        // with Again: its new metadata, as [EncodeMetadata] writes it
	Crawl      []byte        // its crawl ID, for the crawl log; empty: DEFAULT, or not known
	Location   []byte        // absolute URL that the answer redirects to, as the spider says; empty: none
	Took       time.Duration // of a [Done] document: the last fetch, from sending to DONE, for the crawl log
}

// Change is whether the content has changed since the last fetch.
type Change uint8

const (
	ChangeUnknown Change = iota // nobody reported it
	Modified                    // it has changed
	Unchanged                   // it has not
)

// IsOf reports whether the outcome is of the document with its DOC_ID and the given URL: it names
// that URL, or none. The document's URL need not be in serialised form.
func (o *Outcome) IsOf(url []byte) bool {
	if len(o.URL) == 0 || bytes.Equal(o.URL, url) {
		return true
	}
	u, err := weburl.Parse(url)
	return err == nil && bytes.Equal(o.URL, u.Text())
}

// Outcomes holds outcomes in one growing buffer, as [Batch] holds candidates. The zero value is
// ready. It is not safe for concurrent use.
type Outcomes struct {
	buf         []byte
	ends        []ending
	hasLocation bool
}

type ending struct {
	place
	kind     Kind
	change   Change
	noStatus bool
	status   int32
	attempts int32
	metaLen  int32 // of the metadata, which follow the URL
	crawlLen int32 // of the crawl, which follows the metadata
	toLen    int32 // of the location, which follows the crawl
	at       int64 // ns since 1970, or noTime
	pause    time.Duration
	gap      time.Duration
	again    int64
	took     time.Duration
}

// noTime stands for the zero time, which has no count of nanoseconds.
const noTime = -1 << 63

// Reset empties o and keeps its memory. What At returned before is no longer valid.
func (o *Outcomes) Reset() { o.buf, o.ends, o.hasLocation = o.buf[:0], o.ends[:0], false }

// Add appends a copy of an outcome. Times before 1678 or after 2262 are not represented.
func (o *Outcomes) Add(out Outcome) {
	e := ending{
		place:    place{at: len(o.buf), idLen: int32(len(out.DocID)), urlLen: int32(len(out.URL))},
		kind:     out.Kind,
		change:   out.Change,
		noStatus: out.NoStatus,
		status:   int32(out.Status),
		attempts: int32(out.Attempts),
		metaLen:  int32(len(out.Metadata)),
		crawlLen: int32(len(out.Crawl)),
		toLen:    int32(len(out.Location)),
		took:     out.Took,
		at:       noTime,
		pause:    out.Pause,
		gap:      out.Gap,
		again:    out.Again,
	}
	if !out.At.IsZero() {
		e.at = out.At.UnixNano()
	}
	o.buf = append(append(append(append(o.buf, out.DocID...), out.URL...), out.Metadata...), out.Crawl...)
	o.buf = append(o.buf, out.Location...)
	o.ends = append(o.ends, e)
	o.hasLocation = o.hasLocation || e.toLen > 0
}

// Append appends copies of all outcomes of from.
func (o *Outcomes) Append(from *Outcomes) {
	at := len(o.buf)
	o.buf = append(o.buf, from.buf...)
	for _, e := range from.ends {
		e.place.at += at
		o.ends = append(o.ends, e)
	}
	o.hasLocation = o.hasLocation || from.hasLocation
}

// HasLocation reports whether an outcome has Location.
func (o *Outcomes) HasLocation() bool { return o.hasLocation }

// Len returns the number of outcomes.
func (o *Outcomes) Len() int { return len(o.ends) }

// Size returns the number of bytes of text in o.
func (o *Outcomes) Size() int { return len(o.buf) }

// At returns outcome i, from 0 in the order of Add. Its time is in UTC.
func (o *Outcomes) At(i int) Outcome {
	e := o.ends[i]
	id, url := e.in(o.buf)
	out := Outcome{
		DocID: id, URL: url, Kind: e.kind, Status: int(e.status), NoStatus: e.noStatus, Change: e.change,
		Attempts: int(e.attempts), Pause: e.pause, Gap: e.gap, Again: e.again, Took: e.took,
	}
	from := e.place.at + len(id) + len(url)
	if end := from + int(e.metaLen); e.metaLen > 0 {
		out.Metadata, from = o.buf[from:end:end], end
	}
	if end := from + int(e.crawlLen); e.crawlLen > 0 {
		out.Crawl, from = o.buf[from:end:end], end
	}
	if end := from + int(e.toLen); e.toLen > 0 {
		out.Location = o.buf[from:end:end]
	}
	if e.at != noTime {
		out.At = time.Unix(0, e.at).UTC()
	}
	return out
}
