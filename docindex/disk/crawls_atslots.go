package disk

import (
	"context"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/queuesched"
)

// forgetInSlots calls tell with the documents of a crawl that the slots have.
func (s *Store) forgetInSlots(
	ctx context.Context, b *crawlstats.CrawlStats, tell func(*docindex.Outcomes) (int, error),
) (err error) {
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var out docindex.Outcomes
		if next, err = s.someInSlots(b, next, &out); err != nil {
			return err
		}
		if out.Len() == 0 {
			continue
		}
		ended, err := tell(&out)
		s.addPurged(b, ended)
		if err != nil {
			return err
		}
	}
	return nil
}

// someInSlots appends documents of a crawl that the slots have, beginning with a transit's number.
// It returns the number to continue with, or 0. It reads no rows.
func (s *Store) someInSlots(b *crawlstats.CrawlStats, from uint32, out *docindex.Outcomes) (next uint32, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil || b.Count[crawlstats.InSlots] == 0 {
		return 0, err
	}
	for id := from; id < s.transits.bound(); id++ {
		if out.Len() == tellHold || id == from+lookHold {
			return id, nil
		}
		t := s.transits.at(id)
		if t.member == 0 || t.consumer != queuesched.SlotConsumer || s.crawls.partitions[t.member].domain.Crawl != b {
			continue
		}
		out.Add(docindex.Outcome{DocID: s.docs.docIDOf(t), Kind: b.Why})
	}
	return 0, nil
}
