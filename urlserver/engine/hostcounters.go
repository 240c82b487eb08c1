package engine

import (
	"fmt"
	"time"

	"urlserver/docindex"
)

// hostClasses is how many classes say something of a host: 2xx to timeout.
const hostClasses = int(docindex.ClassTimeout) + 1

// Fetched is what came back of one host's documents since the daemon has known it.
type Fetched struct {
	Classes    [hostClasses]uint32 // documents by docindex.Class; no count exceeds the largest uint32
	LastStatus int                 // of the last fetch with a status; 0: there was none, or it got no answer
	HasStatus  bool                // a fetch ended and told its status
	LastError  string              // in words: how the last document ended that failed; "": none has
	ErrorAt    time.Duration       // when; of the engine's clock
	Mean       time.Duration       // from sending to DONE
	HasMean    bool                // a fetch has ended
}

// Done returns how many fetches ended with DONE, well or not.
func (f *Fetched) Done() (n uint64) {
	for _, count := range f.Classes[:docindex.ClassNone+1] {
		n += uint64(count)
	}
	return n
}

// hostCounters counts what came back of one host. It has 64 bytes and no pointers.
type hostCounters struct {
	host    uint32        // hash of the host's name: the slots give numbers of forgotten hosts to others
	used    bool          // something came back
	took    time.Duration // of all fetches that ended with DONE
	errorAt time.Duration
	classes [hostClasses]uint32
	status  int16 // of the last fetch that told one
	told    bool  // there was one
	failed  bool  // class and errCode say how a document failed
	name    nameFault
	class   docindex.Class
	errCode int16
}

// nameFault is why a host had no address to ask, the last time that one was wanted.
type nameFault uint8

const (
	noAddress      nameFault = iota // the name does not exist, or has no address
	refusedAddress                  // see Options.Refused
	failingName                     // no name server answered for it
)

const countersChunk = 1 << 12

// hostTable has the counters of all hosts by the slots' host number, in chunks that never move.
type hostTable struct{ chunks [][]hostCounters }

// at returns the counters of a host and makes room for them. They begin at zero if the number was
// another host's before. hash is that of the host's name.
func (t *hostTable) at(id, hash uint32) *hostCounters {
	for int(id/countersChunk) >= len(t.chunks) {
		t.chunks = append(t.chunks, nil)
	}
	chunk := &t.chunks[id/countersChunk]
	if *chunk == nil {
		*chunk = make([]hostCounters, countersChunk)
	}
	f := &(*chunk)[id%countersChunk]
	if !f.used || f.host != hash {
		*f = hostCounters{host: hash, used: true}
	}
	return f
}

// look returns the counters of a host; zero ones if nothing came back of it.
func (t *hostTable) look(id, hash uint32) (f hostCounters) {
	if n := int(id / countersChunk); n < len(t.chunks) && t.chunks[n] != nil {
		f = t.chunks[n][id%countersChunk]
	}
	if f.host != hash {
		return hostCounters{}
	}
	return f
}

// countOutcome counts the outcome of a host's document, and how long its last fetch took.
func (e *Engine) countOutcome(host uint32, o *docindex.Outcome) {
	class := docindex.ClassOf(o.Kind, o.Status)
	if int(class) >= hostClasses {
		return // that says nothing of the host
	}
	f := e.outcomes.byHost.at(host, e.slots.Host(host).Hash())
	f.took += o.Took
	if f.classes[class]+1 != 0 {
		f.classes[class]++
	}
	if class <= docindex.ClassNone && !o.NoStatus {
		f.status, f.told = int16(o.Status), true
	}
	switch class {
	case docindex.ClassNone:
		if o.NoStatus {
			return
		}
	case docindex.Class4xx, docindex.Class5xx, docindex.ClassDNS, docindex.ClassTimeout:
	default:
		return
	}
	f.failed, f.class, f.errCode, f.errorAt = true, class, int16(o.Status), e.now
}

// view converts the counters.
func (f *hostCounters) view() Fetched {
	v := Fetched{Classes: f.classes, LastStatus: int(f.status), HasStatus: f.told, ErrorAt: f.errorAt}
	if n := v.Done(); n > 0 {
		v.Mean, v.HasMean = f.took/time.Duration(n), true
	}
	if f.failed {
		v.LastError = f.errorWords()
	}
	return v
}

func (f *hostCounters) errorWords() string {
	switch {
	case f.class == docindex.ClassDNS:
		return nameWords[f.name]
	case f.class == docindex.ClassTimeout:
		return "every attempt ended without a status"
	case f.errCode == 0:
		return "no answer"
	}
	return fmt.Sprintf("status %d", f.errCode)
}

var nameWords = [...]string{
	noAddress: "the name does not exist, or has no address",
	refusedAddress: "no address that the daemon may ask; loopback and private networks need " +
		"resolver.allow_networks",
	failingName: "no name server answered for the name within resolver.give_up",
}

// noteNameFault notes why a host has no address to ask.
func (e *Engine) noteNameFault(host uint32, err error) {
	fault := noAddress
	switch {
	case e.opt.Refused != nil && e.opt.Refused(err):
		fault = refusedAddress
	case e.isTemporary(err):
		fault = failingName
	}
	e.outcomes.byHost.at(host, e.slots.Host(host).Hash()).name = fault
}
