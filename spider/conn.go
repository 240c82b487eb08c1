package spider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"urlserver/protocol"
)

// maxBadLines consecutive bad lines end a connection: the peer does not speak the protocol.
const maxBadLines = 100

// talk speaks with one daemon until the connection or ctx ends. The fetches of a connection end
// with it, because the daemon sends those documents again. It reports whether the daemon sent any
// valid line.
func (s *Spider) talk(ctx context.Context, conn net.Conn) (useful bool) {
	s.count.daemons.Add(1)
	defer s.count.daemons.Add(-1)
	log := s.cfg.Log.With().Stringer("daemon", conn.RemoteAddr()).Logger()
	log.Info().Msg("daemon connected")
	useful, err := s.converse(ctx, conn)
	if ctx.Err() == nil {
		log.Warn().Err(err).Msg("daemon disconnected")
	}
	return useful
}

// converse speaks the protocol on conn and closes it. This goroutine reads, one writes, and each
// document has its own. It returns after all of them have ended.
func (s *Spider) converse(ctx context.Context, conn net.Conn) (useful bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	out := newStatuses(conn, s.cfg.StatusTimeout/2)
	links := newPuts(out, &s.count)
	watch := newStallWatch(s.cfg.StatusTimeout/2, cancel)
	var work sync.WaitGroup
	work.Go(func() { cancel(out.run(ctx)) })
	work.Go(func() { watch.run(ctx) })
	s.connected(ctx, links)
	useful, err = s.read(ctx, conn, out, links, watch, &work)
	cancel(err)
	work.Wait()
	conn.Close()
	return useful, context.Cause(ctx)
}

// read reads the daemon's lines and starts a fetch for each, until the stream ends.
func (s *Spider) read(ctx context.Context, r io.Reader, out *statuses, links *puts, watch *stallWatch,
	work *sync.WaitGroup) (useful bool, err error) {
	lines := protocol.NewScanner(r)
	for bad := 0; bad < maxBadLines; {
		line, err := lines.Next()
		if err != nil {
			return useful, fmt.Errorf("read: %w", err)
		}
		if !watch.awake() {
			return useful, context.Cause(ctx)
		}
		if links.answered(line) {
			continue
		}
		arrived := time.Now()
		f, err := protocol.ParseFetch(bytes.Clone(line)) // a copy: the fetch lives longer than the scanner's buffer
		if err != nil {
			bad++
			s.count.badLines.Add(1)
			s.cfg.Log.Warn().Err(err).Bytes("line", line[:min(len(line), 200)]).
				Msg("bad line from the daemon")
			continue
		}
		bad, useful = 0, true
		if s.cfg.Index != onConnection && !s.begin(ctx) {
			return useful, context.Cause(ctx)
		}
		work.Go(func() {
			// answers to PUTs have to be read while fetches wait, as others may wait for the
			// answers
			if s.cfg.Index == onConnection && !s.begin(ctx) {
				return
			}
			s.take(ctx, f, arrived, out, links, watch)
			<-s.busy
		})
	}
	return useful, errors.New("100 bad lines in a row")
}

// begin waits until one more fetch may begin. It returns false if ctx has ended.
func (s *Spider) begin(ctx context.Context) bool {
	select {
	case s.busy <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// take fetches one document. It sends WORKING until the fetch ends, and then DONE. If ctx has ended
// it sends nothing.
func (s *Spider) take(ctx context.Context, f protocol.Fetch, arrived time.Time, out *statuses, links *puts,
	watch *stallWatch) {
	s.count.inFlight.Add(1)
	defer s.count.inFlight.Add(-1)
	working := out.keepWorking(f.Trans, &s.count)
	result, err := s.handle(ctx, f, arrived, links, watch)
	if err != nil {
		working.stop()
		return
	}
	working.done(result)
}

// statuses is the queue of lines to the daemon. One write sends all lines that are queued.
type statuses struct {
	conn  net.Conn
	every time.Duration // time between two WORKING of a document; also the longest time of a write
	wake  chan struct{} // holds one while lines is not empty

	mu    sync.Mutex // guards lines and over of each beat; held for memory work only
	lines []byte
}

func newStatuses(conn net.Conn, every time.Duration) *statuses {
	return &statuses{conn: conn, every: every, wake: make(chan struct{}, 1)}
}

// run writes until ctx ends, or the daemon does not read for as long as a WORKING may be late.
func (o *statuses) run(ctx context.Context) error {
	var buf []byte
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.wake:
		}
		o.mu.Lock()
		buf, o.lines = o.lines, buf[:0]
		o.mu.Unlock()
		o.conn.SetWriteDeadline(time.Now().Add(o.every))
		if _, err := o.conn.Write(buf); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// say queues lines.
func (o *statuses) say(lines []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, lines...)
	o.wakeLocked()
}

// wakeLocked wakes run, which writes lines.
func (o *statuses) wakeLocked() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// beat sends WORKING for one document until it is stopped.
type beat struct {
	out   *statuses
	trans []byte
	timer *time.Timer
	over  bool // guarded by out.mu
	count *counters
}

func (o *statuses) keepWorking(trans []byte, count *counters) *beat {
	b := &beat{out: o, trans: trans, count: count}
	o.mu.Lock() // tick reads timer
	defer o.mu.Unlock()
	b.timer = time.AfterFunc(o.every, b.tick)
	return b
}

func (b *beat) tick() {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	if b.over {
		return
	}
	b.out.lines = protocol.AppendWorking(b.out.lines, b.trans)
	b.out.wakeLocked()
	b.count.working.Add(1)
	b.timer.Reset(b.out.every)
}

// stop ends the beat and sends nothing.
func (b *beat) stop() {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.over = true
	b.timer.Stop()
}

// done ends the beat and sends DONE. No WORKING follows.
func (b *beat) done(r result) {
	b.stop()
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.out.lines = protocol.AppendDoneWith(b.out.lines, b.trans, r.status, r.retryAfter, r.details)
	b.out.wakeLocked()
}
