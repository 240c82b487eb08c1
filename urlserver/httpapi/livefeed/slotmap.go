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
	chunkSlots    = 4096 // slots that are looked at, and told of, together
	chunksPerTick = 5    // looked at in a beat: with more slots than those, a look at all takes several
	staleAfter    = 10 * time.Second
	topSlots      = 16 // of each list
)

// mapChunk is what is known of some slots that follow each other.
type mapChunk struct {
	from      int
	size      int
	cells     []byte    // half a byte a slot, as Map says
	fresh     []byte    // room for the next look
	refreshed time.Time // zero: never
	published bool      // viewers have these cells
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
		all = append(all, mapChunk{from: from, size: size, cells: make([]byte, (size+1)/2), fresh: make([]byte, (size+1)/2)})
	}
	return all
}

// fills is how many a cell tells apart: below half of the slot's length, from there on, full.
const fills = 3

// cell is half a byte: 0 is an empty slot, else its state and how full it is.
func cell(g hostslots.SlotSummary, length int) byte {
	if g.State == hostslots.Empty {
		return 0
	}
	fill := min(int(g.Docs)*(fills-1)/max(length, 1), fills-1)
	return byte(1 + (int(g.State)-1)*fills + fill)
}

// refresh looks at a stripe again.
func (w *Feed) refresh(ctx context.Context, p *mapChunk) error {
	glances := make([]hostslots.SlotSummary, p.size)
	if err := w.cfg.Source.Summaries(ctx, p.from, glances); err != nil {
		return err
	}
	length := w.cfg.QueueLen()
	clear(p.fresh)
	p.busy, p.slow = p.busy[:0], p.slow[:0]
	for i, g := range glances {
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

// insertTop puts e into a sorted list of the first few.
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

// refreshAll looks at what was not looked at for a while.
func (w *Feed) refreshAll(ctx context.Context) error {
	for i := range w.chunks {
		if p := &w.chunks[i]; p.refreshed.IsZero() || time.Since(p.refreshed) >= staleAfter {
			if err := w.refresh(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// addMapChunks looks at some stripes, in turn, and adds those that have changed, while there is room.
func (w *Feed) addMapChunks(ctx context.Context, m *message) {
	for range min(chunksPerTick, len(w.chunks)) {
		p := &w.chunks[w.nextChunk]
		if w.refresh(ctx, p) != nil {
			return
		}
		if !p.published {
			data := append(strconv.AppendInt(nil, int64(p.from), 10), ' ')
			if !m.addText("slots", base64.StdEncoding.AppendEncode(data, p.cells)) {
				return // it is the first one in the next beat
			}
			p.published = true
		}
		w.nextChunk = (w.nextChunk + 1) % len(w.chunks)
	}
}

// Map is all slots, none of them looked at longer ago than some seconds: half a byte each, the
// lower half first. 0 is an empty slot; 1 + 3*(state-1) + fill any other, with the state of
// hostslots.State, and fill 0 below half of Queue_Len, 1 from there on, 2 full.
func (w *Feed) Map(ctx context.Context) (cells []byte, err error) {
	asked := w.do(ctx, func(ctx context.Context) {
		if err = w.refreshAll(ctx); err != nil {
			return
		}
		for i := range w.chunks {
			cells = append(cells, w.chunks[i].cells...)
		}
	})
	return cells, cmp.Or(asked, err)
}
