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

// maxBadLines in a row end a connection: what is at the other end speaks another language.
const maxBadLines = 100

// talk speaks with one daemon until the connection or ctx ends. The fetches of a connection end
// with it: the daemon sends those documents again. It tells if the daemon sent anything that made
// sense.
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

// converse runs the conversation on conn, which it closes: this goroutine reads, one writes, and
// each document has its own. It returns after all of them have.
func (s *Spider) converse(ctx context.Context, conn net.Conn) (useful bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	out := newStatuses(conn, s.cfg.StatusTimeout/2)
	watch := newStallWatch(s.cfg.StatusTimeout/2, cancel)
	var work sync.WaitGroup
	work.Go(func() { cancel(out.run(ctx)) })
	work.Go(func() { watch.run(ctx) })
	useful, err = s.read(ctx, conn, out, watch, &work)
	cancel(err)
	work.Wait()
	conn.Close()
	return useful, context.Cause(ctx)
}

// read takes the daemon's lines and starts a fetch for each, until the stream ends.
func (s *Spider) read(ctx context.Context, r io.Reader, out *statuses, watch *stallWatch,
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
		arrived := time.Now()
		f, err := protocol.ParseFetch(bytes.Clone(line)) // the fetch outlives the scanner's buffer
		if err != nil {
			bad++
			s.count.badLines.Add(1)
			s.cfg.Log.Warn().Err(err).Bytes("line", line[:min(len(line), 200)]).Msg("bad line from the daemon")
			continue
		}
		bad, useful = 0, true
		select {
		case s.busy <- struct{}{}:
		case <-ctx.Done():
			return useful, context.Cause(ctx)
		}
		work.Go(func() {
			s.take(ctx, f, arrived, out, watch)
			<-s.busy
		})
	}
	return useful, errors.New("100 bad lines in a row")
}

// take sees one document through: WORKING while it lasts, DONE at its end. When ctx has ended there
// is nobody to tell.
func (s *Spider) take(ctx context.Context, f protocol.Fetch, arrived time.Time, out *statuses,
	watch *stallWatch) {
	s.count.inFlight.Add(1)
	defer s.count.inFlight.Add(-1)
	working := out.keepWorking(f.Trans, &s.count)
	result, err := s.visit(ctx, f, arrived, watch)
	if err != nil {
		working.stop()
		return
	}
	working.done(result)
}

// statuses is what is to be written to the daemon. Lines that come together leave in one write.
type statuses struct {
	conn  net.Conn
	every time.Duration // between two WORKING of a document; also how long a write may take
	wake  chan struct{} // holds one while lines is not empty

	mu    sync.Mutex // guards lines and over of each beat; held for memory work only
	lines []byte
}

func newStatuses(conn net.Conn, every time.Duration) *statuses {
	return &statuses{conn: conn, every: every, wake: make(chan struct{}, 1)}
}

// run writes until ctx ends or the daemon takes nothing for as long as a WORKING may be late.
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

// wakeLocked has run write what is in lines.
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

// stop ends the beat without a word.
func (b *beat) stop() {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.over = true
	b.timer.Stop()
}

// done ends the beat with DONE; no WORKING follows it.
func (b *beat) done(r result) {
	b.stop()
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.out.lines = protocol.AppendDone(b.out.lines, b.trans, r.status, r.retryAfter)
	b.out.wakeLocked()
}
