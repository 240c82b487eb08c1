package resolver

import (
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/miekg/dns"
)

// probeEvery is the least time between two probes. Names that no server answers cause attempts
// without an answer all the time, and one probe is enough for all of them.
const probeEvery = time.Second

// doubt handles an attempt at s, in era, without an answer. The cause may be the name, if its
// zone's servers are down, or s. So probe asks s for names that can be resolved. Only if s does not
// answer these either, s is lost, and the window shrinks unless nothing listens at s.
func (r *Resolver) doubt(s *server, era uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); !r.probing && r.alive.Err() == nil && (r.probed == 0 || now-r.probed >= probeEvery) {
		r.probing, r.probed = true, now
		go r.probe(s, era)
	}
}

// probe asks s for the name that was resolved last, and for the root servers, which all resolvers
// know. Any answer counts.
func (r *Resolver) probe(s *server, era uint64) {
	defer r.probeEnded()
	var seed [32]byte
	crand.Read(seed[:])
	w := &worker{r: r, rng: rand.NewChaCha8(seed)}
	defer w.port.drop(r)
	l := &lookup{nets: r.nets}
	if name := r.known.Load(); name != nil {
		l.tracks = r.newLookup(*name).tracks[:1]
	}
	l.tracks = append(l.tracks, track{qtype: dns.TypeNS, name: "."})
	h, err := w.try(s, l)
	switch {
	case h != silence:
		r.servers.alive(s)
	case r.alive.Err() == nil:
		r.servers.lose(s, r.now())
		if !dead(err) {
			r.narrow(era)
		}
	}
}

func (r *Resolver) probeEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = false
	r.stopped.Broadcast()
}
