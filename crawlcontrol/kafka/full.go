package kafka

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
)

// maxWaiting is how many bytes of a partition's records wait for room before the partition is read no
// further.
const maxWaiting = 1 << 20

// waiting has the records that are not handled while the index is full, by partition.
type waiting struct {
	s        *Service
	consumer *kgo.Client
	lines    []*line
	err      error // the last one since it was logged
}

// line has the records of a partition that are not handled, in their order.
type line struct {
	part
	records []*kgo.Record
	size    int  // of records, as sizeOf counts them
	paused  bool // the partition is not read
	blocked bool // the first record could not be handled when it was tried last
	looked  int  // how many of records answerStops has looked at
	early   early
}

// early has the replies to stops that were answered before their turn.
type early map[*kgo.Record][]crawlcontrol.Reply

// waitForRoom handles records of which the index has no room for the first. It reads on meanwhile, and
// returns when all records are handled, or ctx has ended.
//
// A request to crawl waits until there is room, and what is behind it in its partition waits, too. The
// other partitions go on, since Kafka keeps no order between partitions. A stop is answered at once,
// wherever it is: the crawl's requests before it, which have no room, would be purged by it, and are
// dropped after it. The offset of such a stop is committed in its turn.
//
// Other members may join the group meanwhile. What waits in a partition that has gone to one of them is dropped:
// it is not committed, so that member gets it. What waits in a topic that was deleted is dropped, too.
func (s *Service) waitForRoom(ctx context.Context, consumer *kgo.Client, records []*kgo.Record) {
	w := waiting{s: s, consumer: consumer}
	s.lag.takeGone() // before these records were polled
	w.add(records)
	retry := backoff{}
	for len(w.lines) > 0 && ctx.Err() == nil {
		moved := false
		for _, l := range slices.Clone(w.lines) {
			moved = w.goOn(ctx, l) || moved
		}
		if w.err != nil && ctx.Err() == nil {
			s.failed(w.err)
		}
		if w.err = nil; moved {
			retry = backoff{}
		}
		if len(w.lines) > 0 {
			w.readFor(ctx, &retry)
		}
	}
}

// add adds records to the lines of their partitions, and returns these.
func (w *waiting) add(records []*kgo.Record) (to []*line) {
	for _, r := range records {
		of := part{r.Topic, r.Partition}
		i := slices.IndexFunc(w.lines, func(l *line) bool { return l.part == of })
		if i < 0 {
			i = len(w.lines)
			w.lines = append(w.lines, &line{part: of, early: early{}})
		}
		l := w.lines[i]
		l.records, l.size = append(l.records, r), l.size+sizeOf(r)
		if !slices.Contains(to, l) {
			to = append(to, l)
		}
	}
	for _, l := range to {
		w.s.lag.back(l.records[0])
		w.pause(l)
	}
	return to
}

// sizeOf returns about how many bytes of memory a record takes: most without a value, such as tombstones,
// have a key.
func sizeOf(r *kgo.Record) int {
	n := 256 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 64 + len(h.Key) + len(h.Value)
	}
	return n
}

// pause makes the client read the partition of a line no further while enough of it waits.
func (w *waiting) pause(l *line) {
	pause := l.size > maxWaiting
	if pause == l.paused {
		return
	}
	l.paused = pause
	this := map[string][]int32{l.topic: {l.partition}}
	if pause {
		w.consumer.PauseFetchPartitions(this)
	} else {
		w.consumer.ResumeFetchPartitions(this)
	}
}

// goOn handles the records of a line, up to one for which there is no room, and the stops behind that.
func (w *waiting) goOn(ctx context.Context, l *line) (moved bool) {
	replies, done, err := w.s.do(ctx, l.records, l.early)
	if done > 0 {
		w.s.settle(ctx, w.consumer, l.records[:done], replies)
		w.drop(l, done)
	}
	if l.blocked = err != nil; l.blocked {
		w.err = err
	}
	if errors.Is(err, docindex.ErrFull) {
		w.answerStops(ctx, l)
	}
	return done > 0
}

// drop removes the first n records of a line, and the line when it has none left.
func (w *waiting) drop(l *line, n int) {
	for _, r := range l.records[:n] {
		l.size -= sizeOf(r)
		delete(l.early, r)
	}
	l.records, l.looked = l.records[n:], max(l.looked-n, 0)
	w.pause(l)
	if len(l.records) == 0 {
		w.lines = slices.DeleteFunc(w.lines, func(one *line) bool { return one == l })
	}
}

// dropGone drops the lines of partitions that are no longer this member's.
func (w *waiting) dropGone(gone map[part]bool) {
	for _, l := range slices.Clone(w.lines) {
		if gone[l.part] {
			w.drop(l, len(l.records))
		}
	}
}

// answerStops answers the stops in a line whose first record waits for room.
func (w *waiting) answerStops(ctx context.Context, l *line) {
	var stops []*kgo.Record
	var messages [][]byte
	for _, r := range l.records[l.looked:] {
		request, err := crawlcontrol.Parse(r.Value)
		if err == nil && request.Verb == crawlcontrol.Stop && l.early[r] == nil {
			stops, messages = append(stops, r), append(messages, r.Value)
		}
	}
	replies, done, err := w.s.handler.Do(ctx, messages)
	if !w.s.send(ctx, replies) {
		return
	}
	w.s.counters.requests.Add(uint64(done))
	for _, r := range replies {
		of := stops[r.Of]
		l.early[of] = append(l.early[of], r)
	}
	if err != nil {
		w.err = err
		return
	}
	l.looked = len(l.records)
}

// readFor reads until it is time to try again, and handles what may be handled of it.
func (w *waiting) readFor(ctx context.Context, retry *backoff) {
	until, cancel := context.WithTimeout(ctx, retry.longer())
	defer cancel()
	for until.Err() == nil && len(w.lines) > 0 {
		w.consumer.AllowRebalance()
		w.s.readAgain(w.consumer)
		records := w.s.fetch(until, w.consumer)
		w.dropGone(w.s.lag.takeGone())
		for _, l := range w.add(records) {
			if l.blocked {
				w.answerStops(ctx, l)
			} else {
				w.goOn(ctx, l)
			}
		}
	}
}
