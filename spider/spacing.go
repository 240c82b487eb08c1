package spider

import (
	"context"
	"net/http/httptrace"
	"net/netip"
	"sync"
	"time"
)

// spacing keeps the daemon's gaps at the host. Connecting takes time and reusing a connection does
// not. So without spacing a request on a kept connection could follow one on a new connection
// sooner than its line followed that one's line. The zero value is ready. Safe for concurrent use.
type spacing struct {
	mu    sync.Mutex // guards all below; held for memory work only
	marks map[netip.Addr]mark
	sweep int // number of marks at which old ones are dropped
}

// mark is the last request to an address.
type mark struct {
	line    time.Time // when its line arrived
	request time.Time // when the request was sent
}

const (
	markAge   = 10 * time.Minute // after that, the time of connecting does not matter
	markSweep = 1024
)

// during returns a context under which a request to addr is sent after the one before by at least
// the time between their lines. After a stall none is sent: its connection is closed instead.
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

// next returns how long a request that is ready now has to wait.
func (s *spacing) next(addr netip.Addr, line, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.marks[addr]
	if known && line.Before(last.line) { // a later line was faster; several requests may be open
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

// forget drops old marks if there are many, at a constant cost per request.
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
