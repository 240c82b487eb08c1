package sim

import "time"

// The daemon chooses which spider gets a document. But while another spider has room, a spider that
// has not answered yet gets few documents, and a slow one not more than its share.

const (
	slow      = 5 * time.Second // for a fetch
	few       = 16              // documents that a spider may have before it has answered
	muchWorse = 16              // times the expected wait at another spider
)

// fetches is how long a spider takes for its documents.
type fetches struct {
	last, mean time.Duration // 0: it has answered none
	answers    int
}

func (f *fetches) took(d time.Duration) {
	f.answers++
	if f.last = d; f.mean == 0 {
		f.mean = d
	}
	f.mean += (d - f.mean) / 8
}

func (f *fetches) least() time.Duration { return min(f.last, f.mean) }
func (f *fetches) most() time.Duration  { return max(f.last, f.mean) }

// chosen checks that a spider may get a document.
func (o *oracle) chosen(id uint32) {
	sp := o.spiders[id]
	if o.service == nil || sp.inFlight == 0 || o.suspected > 0 { // a spider may be kept for what was lost before
		return
	}
	for other, b := range o.spiders { // any will do, whatever the order
		if other == id || b.fetches.last == 0 || !o.hasRoom(other) || b.inFlight >= few/2+b.fetches.answers {
			continue
		}
		if sp.heard < 0 && sp.inFlight >= few {
			o.wrong(RuleChoice,
				"spider %d gets a document more and has not answered to any of %d; spider %d has, and room",
				id, sp.inFlight, other)
			return
		}
		wait := time.Duration(sp.inFlight) * sp.fetches.least()
		needs := b.fetches.most()
		if b.inFlight > 0 {
			needs = max(needs, o.now-b.heard)
		}
		if best := time.Duration(b.inFlight+1) * needs; sp.fetches.least() >= slow &&
			wait > muchWorse*best && sp.fetches.least() > muchWorse*needs {
			o.wrong(RuleChoice,
				"spider %d gets a document, has %d and needs %v for one; spider %d has room and %d, and "+
					"needs %v", id, sp.inFlight, sp.fetches.least(), other, b.inFlight, needs)
			return
		}
	}
}
