package urlserver

import (
	"context"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

// Names of notes in the embedded index.
const (
	robotsNotes  = "r " // before an origin
	addressNotes = "a " // before an address
)

const (
	noteMemory  = 24 * time.Hour // how long the note of an address that backed off counts
	maxBackoffs = 100_000        // the most addresses whose backoff a start restores
	maxPauses   = 100_000        // the most hosts whose pause a start restores: those with the longest
)

const maxNotesWaiting = 100_000 // robots.txt; with more, new ones are not kept

// notebook exchanges notes with the embedded index.
type notebook struct {
	d    *Daemon
	more chan struct{} // holds one when there may be something to do

	mu       sync.Mutex
	requests []*engine.NoteRequest
	learned  []engine.Learned
	backoffs []hostslots.AddressBackoff
}

func newNotebook(d *Daemon) *notebook { return &notebook{d: d, more: make(chan struct{}, 1)} }

// put takes the engine's output over. It does not block.
func (n *notebook) put(out *engine.Out) {
	if len(out.NoteRequests)+len(out.Learned)+len(out.Backoffs) == 0 {
		return
	}
	n.mu.Lock()
	n.requests = append(n.requests, out.NoteRequests...)
	if len(n.learned) < maxNotesWaiting {
		n.learned = append(n.learned, out.Learned...)
	}
	n.backoffs = append(n.backoffs, out.Backoffs...)
	n.mu.Unlock()
	clear(out.NoteRequests)
	clear(out.Learned)
	clear(out.Backoffs)
	out.NoteRequests, out.Learned, out.Backoffs = out.NoteRequests[:0], out.Learned[:0], out.Backoffs[:0]
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// run exchanges notes until ctx ends.
func (n *notebook) run(ctx context.Context) {
	for {
		select {
		case <-n.more:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		requests, learned, backoffs := n.requests, n.learned, n.backoffs
		n.requests, n.learned, n.backoffs = nil, nil, nil
		n.mu.Unlock()
		n.keep(ctx, learned, backoffs) // first: a request may be for one of these notes
		n.find(ctx, requests)
	}
}

// keep makes the index keep notes. A note that the index does not take costs a request later.
func (n *notebook) keep(ctx context.Context, learned []engine.Learned, backoffs []hostslots.AddressBackoff) {
	now := time.Now()
	var notes []docindex.Note
	for _, l := range learned {
		if text, ok := l.Entry.AppendNote(nil, l.Agent, now); ok {
			notes = append(notes, docindex.Note{Name: robotsNotes + l.Origin, Text: text})
		}
	}
	for _, b := range backoffs {
		notes = append(notes, docindex.Note{Name: addressNotes + b.Addr.String(), Text: appendBackoff(nil, b, now)})
	}
	if len(notes) == 0 {
		return
	}
	if err := n.d.parts.Store.KeepNotes(ctx, notes); err != nil && ctx.Err() == nil {
		n.d.log.Debug().Err(err).Msg("docindex: notes were not kept")
	}
}

// find answers requests for notes.
func (n *notebook) find(ctx context.Context, requests []*engine.NoteRequest) {
	type answer struct {
		resp  robots.Response
		at    time.Time
		found bool
	}
	names, answers := make([]string, len(requests)), make([]answer, len(requests))
	for i, r := range requests {
		names[i] = robotsNotes + r.Origin
	}
	if len(names) == 0 {
		return
	}
	err := n.d.parts.Store.FindNotes(ctx, names, func(i int, text []byte) {
		a := &answers[i]
		a.resp, a.at, a.found = robots.ReadNote(text, requests[i].Agent, requests[i].Targets)
	})
	if err != nil && ctx.Err() == nil {
		n.d.log.Debug().Err(err).Msg("docindex: notes were not read")
	}
	n.d.post(func(e *engine.Engine) {
		for i, a := range answers {
			e.NoteFound(requests[i], a.resp, a.at, a.found)
		}
	})
}

// restoredBackoffs returns how addresses backed off before the start.
func restoredBackoffs(parts Parts) (list []hostslots.AddressBackoff) {
	if parts.Store == nil {
		return nil
	}
	latest := map[string]hostslots.AddressBackoff{}
	now := time.Now()
	err := parts.Store.EachNote(context.Background(), addressNotes, func(name string, text []byte) {
		delete(latest, name)
		addr, err := netip.ParseAddr(name[len(addressNotes):])
		b, at, ok := readBackoff(text)
		if err == nil && ok && now.Sub(at) < noteMemory && len(latest) < maxBackoffs {
			b.Addr = addr
			latest[name] = b
		}
	})
	if err != nil {
		parts.Log.Warn().Err(err).Msg("docindex: the backoffs of addresses could not be read")
	}
	return slices.Collect(maps.Values(latest))
}

// restoredPauses returns the pauses of hosts that the index has kept from before the start of a daemon.
func restoredPauses(parts Parts, start time.Time) (list []engine.Pause) {
	if parts.Store == nil {
		return nil
	}
	err := parts.Store.EachPause(context.Background(), func(host []byte, left time.Duration) {
		list = append(list, engine.Pause{Host: string(host), Until: time.Since(start) + left})
		if len(list) == 2*maxPauses {
			list = longestPauses(list)
		}
	})
	if err != nil {
		parts.Log.Warn().Err(err).Msg("docindex: the pauses of hosts could not be read")
	}
	return longestPauses(list)
}

// longestPauses returns the longest of some pauses, at most maxPauses.
func longestPauses(list []engine.Pause) []engine.Pause {
	if len(list) <= maxPauses {
		return list
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Until > list[j].Until })
	return slices.Delete(list, maxPauses, len(list))
}

// appendBackoff appends the note of an address: the time, its gap and the sites, one a line. An
// address that does not back off has no note.
func appendBackoff(dst []byte, b hostslots.AddressBackoff, at time.Time) []byte {
	if b.Gap == 0 {
		return dst
	}
	dst = binary.AppendVarint(dst, at.Unix())
	dst = binary.AppendVarint(dst, int64(b.Gap))
	return append(dst, strings.Join(b.Sites, "\n")...)
}

func readBackoff(text []byte) (b hostslots.AddressBackoff, at time.Time, ok bool) {
	unix, n := binary.Varint(text)
	if n <= 0 {
		return b, at, false
	}
	gap, m := binary.Varint(text[n:])
	if m <= 0 {
		return b, at, false
	}
	b.Gap, b.Sites = time.Duration(gap), strings.Split(string(text[n+m:]), "\n")
	return b, time.Unix(unix, 0), true
}
