package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/protocol"
)

// spider is the role of one or several spiders that answer DONE to every line at once.
type spider struct {
	Addr  string
	Conns int
	Lines int           // "wait" is answered after so many lines; 0: the spiders end with the process
	Gap   time.Duration // between two lines for one address, for "late"; 0: lines are not timed

	start    time.Time
	answered atomic.Int64
	all      chan struct{} // closed when Lines lines are answered
	took     time.Duration // set before all is closed
	conns    []net.Conn
	working  sync.WaitGroup

	mu     sync.Mutex // guards all below
	timing bool
	last   []time.Duration // time of the last line by number of the address
	late   []time.Duration
	early  time.Duration // the most that a line came too early
}

func (s *spider) open(ctx context.Context) (ready any, err error) {
	s.all = make(chan struct{})
	s.start = time.Now()
	for range s.Conns {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", s.Addr)
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, conn)
		s.working.Go(func() { s.answerAll(conn) })
	}
	return nil, nil
}

func (s *spider) close() error {
	var errs []error
	for _, c := range s.conns {
		errs = append(errs, c.Close())
	}
	s.working.Wait()
	return errors.Join(errs...)
}

// result is the answer to "wait".
type result struct {
	Took time.Duration // from connecting to the last answer
	CPU  time.Duration // CPU time of the spider's process
}

func (s *spider) do(ctx context.Context, r request) (any, error) {
	switch r.Do {
	case "wait":
		select {
		case <-s.all:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		u, err := readUsage()
		return result{Took: s.took, CPU: u.CPU}, err
	case "time":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timing, s.late, s.early = true, s.late[:0], 0
		return nil, nil
	case "late":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timing = false
		return lateness{Spread: spreadOf(s.late), Early: s.early}, nil
	}
	return nil, unknown(r)
}

// answerAll reads until the connection ends. It answers all lines that have arrived with one write.
func (s *spider) answerAll(conn net.Conn) {
	in := protocol.NewScanner(conn)
	var out []byte
	lines := int64(0)
	for {
		line, err := in.Next()
		if err != nil {
			return
		}
		if s.Gap > 0 {
			s.note(line, time.Since(s.start))
		}
		id, _, _ := bytes.Cut(line, []byte(" "))
		out = protocol.AppendDone(out, id, 200, protocol.NoRetryAfter)
		lines++
		if in.Buffered() {
			continue
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
		s.count(lines)
		out, lines = out[:0], 0
	}
}

func (s *spider) count(lines int64) {
	n := s.answered.Add(lines)
	if most := int64(s.Lines); n-lines < most && n >= most {
		s.took = time.Since(s.start)
		close(s.all)
	}
}

// lateness is the difference between the time of a line and the earliest time allowed, one gap
// after the line before to the same address.
type lateness struct {
	Spread spread
	Early  time.Duration // the most that a line came too early
}

// note records the time of a line, compared with the line before to the same address.
func (s *spider) note(line []byte, now time.Duration) {
	n, ok := numberOf(hostIP(line))
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n >= len(s.last) {
		s.last = append(s.last, make([]time.Duration, 1<<16)...)
	}
	before := s.last[n]
	s.last[n] = now
	if before == 0 || !s.timing {
		return
	}
	late := now - before - s.Gap
	s.early = max(s.early, -late)
	s.late = append(s.late, max(0, late))
}

// hostIP returns the third field of a line.
func hostIP(line []byte) netip.Addr {
	fields := bytes.SplitN(line, []byte(" "), 4)
	if len(fields) < 4 {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(string(fields[2]))
	if err != nil {
		return netip.Addr{}
	}
	return a
}
