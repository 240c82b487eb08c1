package netguard

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// ReloadPeriod is the period for ServerTLS.Watch in production: changed files are in use after at
// most two.
const ReloadPeriod = 10 * time.Second

// sum is a digest of the contents of all files.
type sum [sha256.Size]byte

// Watch reads the files each period until ctx ends. It loads them after they have changed and
// then stayed the same for a period, so that a certificate and its key that are replaced one after
// the other are loaded together. reloaded receives the result of each load. Watch compares
// contents rather than dates, which also works with symbolic links and on shared file systems.
func (s *ServerTLS) Watch(ctx context.Context, period time.Duration, reloaded func(error)) {
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
			reloaded(s.reload(now))
		}
		before = now
	}
}

func (f ServerFiles) sum() (all sum) {
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
