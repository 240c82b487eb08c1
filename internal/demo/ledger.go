package demo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// ledger is the doc index of the demo: a memory index that notes how each document ends, and that
// tells when nothing is left.
//
// Nothing is left when no document is scheduled or in transit. What the daemon holds and what a
// spider has is in transit until its outcome is here; and a spider ends a document only after the
// index has taken its links. So there is no link on its way either.
type ledger struct {
	*memory.Store
	web    *web
	finish func() // called when nothing is left

	mu       sync.Mutex               // guards all below; held for memory work only
	ends     map[string]docindex.Kind // by URL
	counts   map[ending]int
	repeated faults
	refused  int
}

// ending is an outcome as the report counts it.
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

var _ docindex.Store = (*ledger)(nil)

// newLedger returns a ledger with w's seeds. finish must not block.
func newLedger(ctx context.Context, w *web, finish func()) (*ledger, error) {
	l := &ledger{
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

// Outcomes is [docindex.Source.Outcomes].
func (l *ledger) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
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

func (l *ledger) note(o docindex.Outcome) {
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

// Put is [docindex.Putter.Put]; it refuses addresses of other machines.
func (l *ledger) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	var inside docindex.Puts
	var places, refused []int // in p: of what is inside, and the others
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

// judge compares how documents ended with how they had to. whole is false for a crawl that was
// ended early: then those without an outcome are not lost.
func (l *ledger) judge(p plan, whole bool) (wrong faults) {
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

// ended is how many documents have an outcome.
func (l *ledger) ended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ends)
}

// tally is how many documents ended how, "done" first, in the order of statuses.
func (l *ledger) tally() (ends []ending, count map[ending]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends = slices.SortedFunc(maps.Keys(l.counts), func(a, b ending) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return a.status - b.status
	})
	return ends, maps.Clone(l.counts)
}

// skipped is how many links led to addresses of other machines.
func (l *ledger) skipped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
