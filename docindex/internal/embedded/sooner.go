package embedded

import "urlserver/docindex"

// BringsForward reports whether a Put that is to go out sooner changes a known document, which is
// due at a second since 1970 if it is scheduled. now is in ms. A document in transit stays as it is:
// it is out already.
func BringsForward(p *docindex.Put, state docindex.State, due, now int64) bool {
	switch state {
	case docindex.Scheduled:
		at := p.Due
		if at == docindex.Now {
			at = now / 1000
		}
		return at < due
	case docindex.Completed:
		return p.Due != docindex.Never
	}
	return false
}
