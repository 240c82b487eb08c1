package certs

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// Period is for Watch: what has changed is in force after two of these at most.
const Period = 10 * time.Second

// sum stands for what the files hold.
type sum [sha256.Size]byte

// Watch looks at the files each period until ctx ends, and has them read again once they have changed and stayed as
// they are for a period: so a certificate and its key that are replaced one after the other are read together. told
// hears what came of it, as Reload answers. It looks at what files hold, not at their dates, so that links and shared
// file systems do.
func (s *Server) Watch(ctx context.Context, period time.Duration, told func(error)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	before := s.files.sum()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := s.files.sum()
		if now == before && now != *s.tried.Load() {
			told(s.Reload())
		}
		before = now
	}
}

func (f Files) sum() (all sum) {
	h := sha256.New()
	for _, name := range []string{f.Cert, f.Private, f.CA} {
		var one sum
		if data, err := os.ReadFile(name); err == nil {
			one = sha256.Sum256(data)
		}
		h.Write(one[:])
	}
	return sum(h.Sum(nil))
}
