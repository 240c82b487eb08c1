package spider

import (
	"context"
	"net/http/httptrace"
	"net/netip"
	"sync"
	"time"
)

// spacing keeps the daemon's gaps on their way to the host: connecting takes time, and a kept
// connection none, so without it a request on a new connection and the next one on a kept one would
// follow each other sooner than their lines did. The zero value is ready; safe for concurrent use.
type spacing struct {
	mu    sync.Mutex // guards all below; held for memory work only
	marks map[netip.Addr]mark
	sweep int // size of marks at which old ones are dropped
}

// mark is the last request to an address.
type mark struct {
	line    time.Time // when its line came
	request time.Time // when the request left
}

const (
	markAge   = 10 * time.Minute // after which connecting no longer matters
	markSweep = 1024
)

// during returns a context under which a request to addr leaves no sooner after the one before than
// its line came after that one's. After a stall none leaves: its connection is closed instead.
func (s *spacing) during(ctx context.Context, addr netip.Addr, line time.Time,
	watch *stallWatch) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			sleep(ctx, s.next(addr, line, time.Now()))
			if !watch.awake() {
				info.Conn.Close()
			}
		},
	})
}

// next returns how long a request that could leave now has to wait.
func (s *spacing) next(addr netip.Addr, line, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.marks[addr]
	if known && line.Before(last.line) { // overtaken by a later one; several may be open at once
		return 0
	}
	wait := time.Duration(0)
	if known {
		wait = max(0, last.request.Add(line.Sub(last.line)).Sub(now))
	}
	if s.marks == nil {
		s.marks, s.sweep = map[netip.Addr]mark{}, markSweep
	}
	s.marks[addr] = mark{line: line, request: now.Add(wait)}
	s.forget(now)
	return wait
}

// forget drops old marks when there are many, at a constant cost a request.
func (s *spacing) forget(now time.Time) {
	if len(s.marks) < s.sweep {
		return
	}
	for addr, m := range s.marks {
		if now.Sub(m.request) > markAge {
			delete(s.marks, addr)
		}
	}
	s.sweep = max(markSweep, 2*len(s.marks))
}
