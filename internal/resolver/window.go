package resolver

// firstWindow is the number of concurrent look-ups before anything is known of the servers, and
// while they are silent. So few are no burden, and names without an answer do not block the others.
const firstWindow = 16

// window bounds the number of concurrent look-ups. It starts small, grows by one with each answer,
// and halves when servers become silent. Pure; not safe for concurrent use.
type window struct {
	limit int // present limit; at most bound
	bound int
	era   uint64 // number of halvings so far
}

func newWindow(bound int) window { return window{limit: min(firstWindow, bound), bound: bound} }

// answered records an answer.
func (w *window) answered() { w.limit = min(w.limit+1, w.bound) }

// silent records a query of era without an answer, and halves the window. A query from before the
// last halving says nothing about the present window, so a burst of timeouts halves it once.
func (w *window) silent(era uint64) {
	if era != w.era {
		return
	}
	w.limit = min(max(w.limit/2, firstWindow), w.limit)
	w.era++
}
