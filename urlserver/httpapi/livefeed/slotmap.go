package livefeed

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"urlserver/hostslots"
)

const (
	chunkSlots    = 4096 // slots of a chunk: read and published together
	chunksPerTick = 5    // read for a message; a larger map takes several messages
	staleAfter    = 10 * time.Second
	topSlots      = 16 // of each list
)

// mapChunk is the last known state of a range of slots.
type mapChunk struct {
	from      int
	size      int
	cells     []byte    // half a byte a slot, in the encoding of Map
	fresh     []byte    // buffer for the next refresh
	refreshed time.Time // zero: never
	published bool      // subscribers have these cells
	busy      []topEntry
	slow      []topEntry
}

// topEntry is a slot that may be among the first of a list.
type topEntry struct {
	slot, sent, docs uint32
	gap              time.Duration
}

func busier(a, b topEntry) int {
	return cmp.Or(cmp.Compare(b.docs, a.docs), cmp.Compare(b.sent, a.sent), cmp.Compare(a.slot, b.slot))
}

func slower(a, b topEntry) int {
	return cmp.Or(cmp.Compare(b.gap, a.gap), cmp.Compare(b.docs, a.docs), cmp.Compare(a.slot, b.slot))
}

func newMapChunks(slots int) (all []mapChunk) {
	for from := 0; from < slots; from += chunkSlots {
		size := min(chunkSlots, slots-from)
		all = append(all, mapChunk{from: from, size: size, cells: make([]byte, (size+1)/2),
			fresh: make([]byte, (size+1)/2)})
	}
	return all
}

// fills is the number of fill levels of a cell: below half of Queue_Len, from there on, full.
const fills = 3

// cell encodes a slot in half a byte: 0 is an empty slot, else its state and fill level.
func cell(g hostslots.SlotSummary, length int) byte {
	if g.State == hostslots.Empty {
		return 0
	}
	fill := min(int(g.Docs)*(fills-1)/max(length, 1), fills-1)
	return byte(1 + (int(g.State)-1)*fills + fill)
}

// refresh reads the slots of a chunk.
func (f *Feed) refresh(ctx context.Context, p *mapChunk) error {
	summaries := make([]hostslots.SlotSummary, p.size)
	if err := f.cfg.Source.Summaries(ctx, p.from, summaries); err != nil {
		return err
	}
	length := f.cfg.QueueLen()
	clear(p.fresh)
	p.busy, p.slow = p.busy[:0], p.slow[:0]
	for i, g := range summaries {
		p.fresh[i/2] |= cell(g, length) << (i % 2 * 4)
		if g.State == hostslots.Empty {
			continue
		}
		e := topEntry{slot: uint32(p.from + i), sent: g.Sent, docs: g.Docs, gap: g.Gap}
		p.busy = insertTop(p.busy, e, busier)
		p.slow = insertTop(p.slow, e, slower)
	}
	p.published = p.published && slices.Equal(p.cells, p.fresh)
	p.cells, p.fresh = p.fresh, p.cells
	p.refreshed = time.Now()
	return nil
}

// insertTop inserts e into a sorted list of at most topSlots entries, if it is among the first.
func insertTop(list []topEntry, e topEntry, order func(a, b topEntry) int) []topEntry {
	if len(list) == topSlots && order(list[topSlots-1], e) <= 0 {
		return list
	}
	at, _ := slices.BinarySearchFunc(list, e, order)
	if len(list) == topSlots {
		list = list[:topSlots-1]
	}
	return slices.Insert(list, at, e)
}

// refreshAll refreshes the chunks that are older than staleAfter.
func (f *Feed) refreshAll(ctx context.Context) error {
	for i := range f.chunks {
		if p := &f.chunks[i]; p.refreshed.IsZero() || time.Since(p.refreshed) >= staleAfter {
			if err := f.refresh(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// addMapChunks refreshes the next chunks in turn and adds those that have changed, as long as they
// fit.
func (f *Feed) addMapChunks(ctx context.Context, m *message) {
	for range min(chunksPerTick, len(f.chunks)) {
		p := &f.chunks[f.nextChunk]
		if f.refresh(ctx, p) != nil {
			return
		}
		if !p.published {
			data := append(strconv.AppendInt(nil, int64(p.from), 10), ' ')
			if !m.addText("slots", base64.StdEncoding.AppendEncode(data, p.cells)) {
				return // the next message begins with it
			}
			p.published = true
		}
		f.nextChunk = (f.nextChunk + 1) % len(f.chunks)
	}
}

// Map returns the state of all slots, at most staleAfter old: half a byte each, the lower half
// first. 0 is an empty slot; another has 1 + 3*(state-1) + fill, where state is a hostslots.State
// and fill is 0 below half of Queue_Len, 1 from there on, 2 when full.
func (f *Feed) Map(ctx context.Context) (cells []byte, err error) {
	asked := f.do(ctx, func(ctx context.Context) {
		if err = f.refreshAll(ctx); err != nil {
			return
		}
		for i := range f.chunks {
			cells = append(cells, f.chunks[i].cells...)
		}
	})
	return cells, cmp.Or(asked, err)
}
