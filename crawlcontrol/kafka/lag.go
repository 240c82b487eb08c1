package kafka

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lag counts the records of this member's partitions that it has not handled, by the last word of
// the brokers.
type lag struct {
	mu    sync.Mutex // guards all below; held for memory work only
	parts map[part]span
	left  map[part]bool // partitions that have gone since takeGone
}

type part struct {
	topic     string
	partition int32
}

// span is two offsets: done is the next record to handle, end the next one to be written.
type span struct{ done, end int64 }

// polled stores what a broker said along with its records.
func (l *lag) polled(p kgo.FetchTopicPartition) {
	if len(p.Records) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts[part{p.Topic, p.Partition}] = span{p.Records[0].Offset, p.HighWatermark}
}

// handled stores that records are handled. They come in order.
func (l *lag) handled(records []*kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		of := part{r.Topic, r.Partition}
		if s, ours := l.parts[of]; ours {
			s.done = r.Offset + 1
			l.parts[of] = s
		}
	}
}

// back stores that a record is not handled yet, although later ones of its partition were polled.
func (l *lag) back(r *kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := part{r.Topic, r.Partition}
	if s, ours := l.parts[of]; ours {
		s.done = r.Offset
		l.parts[of] = s
	}
}

// gone forgets partitions that other members read from now on.
func (l *lag) gone(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.parts, func(p part, _ span) bool { return slices.Contains(lost[p.topic], p.partition) })
	if l.left == nil {
		l.left = map[part]bool{}
	}
	for topic, partitions := range lost {
		for _, p := range partitions {
			l.left[part{topic, p}] = true
		}
	}
}

// takeGone returns the partitions that have gone since it was called last.
func (l *lag) takeGone() (left map[part]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, l.left = l.left, nil
	return left
}

func (l *lag) sum() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.parts {
		n += max(s.end-s.done, 0)
	}
	return n
}
