package login

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

const maxSessions = 1000 // one more ends the session that would end first

// sessions holds the sessions that have not ended, by the hash of the cookie's value.
type sessions struct {
	mu sync.Mutex                      // guards by; held for memory work only
	by map[[sha256.Size]byte]time.Time // when they end
}

// begin begins a session and returns its cookie's value.
func (s *sessions) begin(until time.Time) (value string) {
	value = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) >= maxSessions {
		s.dropLocked()
	}
	s.by[sha256.Sum256([]byte(value))] = until
	return value
}

// dropLocked ends the session that would end first.
func (s *sessions) dropLocked() {
	var first [sha256.Size]byte
	var end time.Time
	for key, until := range s.by {
		if end.IsZero() || until.Before(end) {
			first, end = key, until
		}
	}
	delete(s.by, first)
}

func (s *sessions) goesOn(value string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.by[sha256.Sum256([]byte(value))])
}

func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, sha256.Sum256([]byte(value)))
}
