package disk

import (
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// Words of the rows that belong to the whole store.
const (
	metaVersion = "version"
	metaSlots   = "slots"   // when the slots were in use last, about, ms
	metaDelay   = "delay"   // of queues without a delay of their own, ms
	metaPassive = "passive" // exists while URL Frontier clients are not served

	metaOutOfScope = "out_of_scope" // how many outcomes were OutOfScope

	metaFlushed = "flushed" // see database.flushAll
)

func metaKey(word string) []byte { return append([]byte{metaRow}, word...) }

// Set is [docindex.Frontier.Set].
func (s *Store) Set(ctx context.Context, set docindex.Setting) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := set.Check(); err != nil {
		return err
	}
	b, no, err := s.set(set)
	if err != nil {
		return err
	}
	if set.Kind != docindex.SetActive {
		s.recall(set)
	}
	return s.db.waitSync(b, no)
}

func (s *Store) set(set docindex.Setting) (b *pebble.Batch, no uint64, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return nil, 0, err
	}
	if set.Kind == docindex.SetActive {
		s.setActiveLocked(set.Value != 0)
	} else {
		var to queuesched.Settings
		if to, err = embedded.SettingsOf(&set); err == nil && set.Kind == docindex.SetDelay && len(set.Key) == 0 {
			return s.setDefaultLocked(*to.Delay)
		}
		if err == nil {
			err = s.setLocked(&set, to, s.base.Now())
		}
	}
	if err != nil {
		s.txn.b.Close()
		s.txn.clear()
		return nil, 0, err
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, err
}

func (s *Store) setActiveLocked(active bool) {
	s.base.Inactive = !active
	if active {
		s.txn.b.Delete(metaKey(metaPassive), nil)
	} else {
		s.txn.b.Set(metaKey(metaPassive), nil, nil)
	}
}

// setDefaultLocked sets the delay of queues without a delay of their own. After the commit, it
// releases the lock now and then.
func (s *Store) setDefaultLocked(delay int64) (b *pebble.Batch, no uint64, err error) {
	s.txn.b.Set(metaKey(metaDelay), binary.AppendVarint(nil, delay), nil)
	if b, err = s.txn.commit(); err != nil {
		return nil, 0, err
	}
	no = s.queues.journal.no
	s.base.Sched.SetDefaultDelay(delay)
	s.base.RefreshLocked()
	return b, no, nil
}

func (s *Store) setLocked(set *docindex.Setting, to queuesched.Settings, now int64) error {
	if set.Host {
		return s.setOnHostLocked(set, to, now)
	}
	if !s.base.Sched.Set(set.Crawl, set.Key, to, now) {
		return docindex.ErrTooMany
	}
	if id := s.base.Sched.Find(set.Crawl, set.Key); id != 0 {
		s.queues.rewriteRow(id)
		return nil
	}
	all, _ := s.base.Sched.Preset(set.Crawl, set.Key)
	s.txn.b.Set(presetKey(set.Crawl, set.Key), appendSettings(nil, all), nil)
	return nil
}
