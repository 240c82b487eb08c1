package docindex

import "context"

// Progress counts documents by what is to become of them.
type Progress struct {
	Scheduled uint64 `json:"scheduled"` // due now
	InFlight  uint64 `json:"in_flight"` // at spiders, host slots or URL Frontier clients
	Later     uint64 `json:"later"`     // due later
	Completed uint64 `json:"completed"` // ended
}

// Counter is the part of a [Frontier] that ProgressOf needs.
type Counter interface {
	Count(ctx context.Context, s *Scope) (Counts, error)
}

// ProgressOf returns the progress of a crawl ID, or of all crawls if it is "". It costs O(1).
func ProgressOf(ctx context.Context, s Counter, crawl string) (Progress, error) {
	var of *Scope
	switch crawl {
	case "":
	case DefaultCrawl:
		of = &Scope{}
	default:
		of = &Scope{Crawl: []byte(crawl)}
	}
	n, err := s.Count(ctx, of)
	later := min(n.Later, n.Scheduled)
	return Progress{Scheduled: n.Scheduled - later, InFlight: n.InTransit, Later: later, Completed: n.Completed}, err
}
