package crawllog

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

const (
	maxFile    = 256 << 20   // bytes of a file
	kept       = 8           // files beside the one that is being written
	maxWaiting = 100_000     // outcomes that wait to be written
	maxText    = 16 << 20    // bytes of their DOC_IDs and URLs
	firstPause = time.Second // before a write is tried again; it doubles
	maxPause   = 30 * time.Second
	lastWait   = 3 * time.Second // for what is left when Run is to end
	portion    = 1 << 20         // bytes of lines that are made before they are written
)

// Log is a crawl log. Use New, then Run. Add may be called from any goroutine, never waits for the
// disk, and does nothing on a nil *Log.
type Log struct {
	log   zerolog.Logger
	file  rotating
	first time.Duration // the first pause after an error
	last  time.Duration // how long Run goes on after its context has ended
	more  chan struct{} // holds one when something may wait

	written, lost atomic.Uint64 // lines
	failing       atomic.Bool   // the last write failed

	mu      sync.Mutex // guards all below; held for memory work only
	waiting *docindex.Outcomes
	spare   *docindex.Outcomes
	losing  bool // lines were lost since the last write that did not fail
}

// New returns a crawl log at path. Nothing is written yet.
func New(path string, log zerolog.Logger) *Log {
	return &Log{
		log: log, file: rotating{path: path, max: maxFile, keep: kept}, first: firstPause,
		last: lastWait, more: make(chan struct{}, 1), waiting: &docindex.Outcomes{},
		spare: &docindex.Outcomes{},
	}
}

// Add copies outcomes. Those for which there is no room are lost and counted.
func (l *Log) Add(o *docindex.Outcomes) {
	if l == nil || o.Len() == 0 {
		return
	}
	if l.add(o) {
		l.log.Warn().Str("file", l.file.path).
			Msg("crawl log: the disk does not keep up; lines are lost, and the crawl goes on")
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// add reports whether lines begin to be lost.
func (l *Log) add(o *docindex.Outcomes) (begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range o.Len() {
		if l.waiting.Len() >= maxWaiting || l.waiting.Size() >= maxText {
			l.lost.Add(uint64(o.Len() - i))
			begins, l.losing = !l.losing, true
			return begins
		}
		l.waiting.Add(o.At(i))
	}
	return false
}

// take returns the outcomes that wait.
func (l *Log) take() *docindex.Outcomes {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.waiting
	l.waiting, l.spare = l.spare, taken
	l.waiting.Reset()
	return taken
}

// Run writes until ctx ends, and then what is left, for a few seconds at most. If a write still
// hangs then, Run returns and leaves its goroutine behind.
func (l *Log) Run(ctx context.Context) {
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, hard)
	}()
	<-ctx.Done()
	for _, wait := range []time.Duration{l.last, l.last / 4} {
		select {
		case <-done:
		case <-time.After(wait):
		}
		cut() // what is not written now is lost
	}
}

// run writes until ctx ends, and then what is left, until hard ends.
func (l *Log) run(ctx, hard context.Context) {
	defer l.file.close()
	for ended := false; ; {
		if o := l.take(); o.Len() > 0 {
			l.writeAll(hard, o)
			continue
		}
		if ended {
			return
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			ended = true
		}
	}
}

// writeAll writes a line for each outcome.
func (l *Log) writeAll(ctx context.Context, o *docindex.Outcomes) {
	var text []byte
	lines := 0
	for i := range o.Len() {
		out := o.At(i)
		text = appendLine(text, &out)
		lines++
		if len(text) >= portion || i == o.Len()-1 {
			l.write(ctx, text, lines)
			text, lines = text[:0], 0
		}
	}
}

// write tries until the lines are in the file, or until ctx ends; then they are lost.
func (l *Log) write(ctx context.Context, text []byte, lines int) {
	for pause := l.first; ; pause = min(2*pause, maxPause) {
		n, err := l.file.write(text)
		done := countLines(text[:n])
		l.written.Add(uint64(done))
		text, lines = text[n:], lines-done
		if err == nil {
			l.recovered()
			return
		}
		if !l.failing.Swap(true) {
			l.log.Warn().Err(err).Str("file", l.file.path).
				Msg("crawl log cannot be written; it is tried again, and the crawl goes on")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			l.lost.Add(uint64(lines))
			return
		}
	}
}

// recovered notes that a write did not fail.
func (l *Log) recovered() {
	l.mu.Lock()
	lost := l.losing
	l.losing = false
	l.mu.Unlock()
	if failed := l.failing.Swap(false); failed || lost {
		l.log.Info().Str("file", l.file.path).Uint64("lines_lost", l.lost.Load()).
			Msg("crawl log is written again")
	}
}

// count returns how many outcomes wait.
func (l *Log) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.Len()
}

// crawlOf returns the name of an outcome's crawl.
func crawlOf(o *docindex.Outcome) string { return cmp.Or(string(o.Crawl), docindex.DefaultCrawl) }
