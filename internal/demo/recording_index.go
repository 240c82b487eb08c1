package demo

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"strconv"
	"sync"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// recordingIndex is the doc index of the demo: a memory index that records how each document ends,
// and reports when nothing is left.
//
// Nothing is left when no document is scheduled or in transit. A document is in transit until the
// index has its outcome, also while the daemon or a spider has it. A spider ends a document only
// after the index has taken its links, so no link is in transit either.
type recordingIndex struct {
	*memory.Store
	web    *web
	finish func() // called when nothing is left

	mu       sync.Mutex               // guards all below; held for memory work only
	ends     map[string]docindex.Kind // by URL
	counts   map[ending]int
	repeated faults
	refused  int
}

// ending is an outcome, as the report counts it.
type ending struct {
	kind   docindex.Kind
	status int
}

func (e ending) String() string {
	if e.kind != docindex.Done {
		return e.kind.String()
	}
	return e.kind.String() + " " + strconv.Itoa(e.status)
}

var _ docindex.Store = (*recordingIndex)(nil)

// newRecordingIndex returns an index with w's seeds. finish must not block.
func newRecordingIndex(ctx context.Context, w *web, finish func()) (*recordingIndex, error) {
	l := &recordingIndex{
		Store: memory.New(), web: w, finish: finish,
		ends: map[string]docindex.Kind{}, counts: map[ending]int{},
	}
	var seeds docindex.Puts
	for _, url := range w.seeds {
		if err := seeds.Add(docindex.Put{URL: []byte(url)}); err != nil {
			return nil, err
		}
	}
	_, err := l.Put(ctx, &seeds)
	return l, err
}

// Outcomes implements [docindex.Source].
func (l *recordingIndex) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	if err := l.Store.Outcomes(ctx, o); err != nil {
		return err
	}
	for i := range o.Len() {
		l.note(o.At(i))
	}
	if s := l.Stats(); s.Scheduled == 0 && s.InTransit == 0 {
		l.finish()
	}
	return nil
}

func (l *recordingIndex) note(o docindex.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	url := string(o.URL)
	if _, ended := l.ends[url]; ended {
		l.repeated.addf("%s", url)
	}
	l.ends[url] = o.Kind
	l.counts[ending{kind: o.Kind, status: o.Status}]++
}

var errOutside = errors.New("an address that is not of the demo; it crawls nothing else")

// Put implements [docindex.Putter]. It refuses addresses of other machines.
func (l *recordingIndex) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	var inside docindex.Puts
	var places, refused []int // indexes in p
	for i := range p.Len() {
		if _, host := p.At(i); outside(host, l.web) {
			refused = append(refused, i)
			p.SetVerdict(i, docindex.Refused)
			continue
		}
		inside.AddFrom(p, i)
		places = append(places, i)
	}
	res, err := l.Store.Put(ctx, &inside)
	for i, place := range places {
		p.SetVerdict(place, inside.Verdict(i))
	}
	for i := range res.Refused {
		res.Refused[i].Index = places[res.Refused[i].Index]
	}
	for _, i := range refused {
		res.Refused = append(res.Refused, docindex.Refusal{Index: i, Err: errOutside})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused += len(refused)
	return res, err
}

// judge compares how documents ended with the plan. If whole is false, the crawl was ended early,
// and documents without an outcome are not lost.
func (l *recordingIndex) judge(p plan, whole bool) (wrong faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, url := range slices.Sorted(maps.Keys(p.ends)) {
		switch got, ended := l.ends[url]; {
		case !ended && whole:
			wrong.addf("%s: no outcome, want %v", url, p.ends[url])
		case ended && got != p.ends[url]:
			wrong.addf("%s: outcome %v, want %v", url, got, p.ends[url])
		}
	}
	for _, url := range slices.Sorted(maps.Keys(l.ends)) {
		if _, known := p.ends[url]; !known {
			wrong.addf("%s: outcome %v, and nothing links to it", url, l.ends[url])
		}
	}
	return wrong
}

// ended returns the number of documents with an outcome.
func (l *recordingIndex) ended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ends)
}

// countEnds counts documents by how they ended. ends has "done" first, in the order of statuses.
func (l *recordingIndex) countEnds() (ends []ending, count map[ending]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends = slices.Collect(maps.Keys(l.counts))
	sort.Slice(ends, func(i, j int) bool {
		a, b := ends[i], ends[j]
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.status, b.status)) < 0
	})
	return ends, maps.Clone(l.counts)
}

// skipped returns the number of links to addresses of other machines.
func (l *recordingIndex) skipped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
