package disk

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// Words of rows of the whole store.
const (
	metaVersion = "version"
	metaSlots   = "slots"   // ms when they were given something, about
	metaDelay   = "delay"   // of queues that have none of their own, ms
	metaPassive = "passive" // is there while calls are not served
)

func metaKey(word string) []byte { return append([]byte{metaRow}, word...) }

// maxDelay is the longest delay, in seconds: what the interface can say.
const maxDelay = 1<<32 - 1

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
	return s.waitSync(b, no)
}

func (s *Store) set(set docindex.Setting) (b *pebble.Batch, no uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginLocked(); err != nil {
		return nil, 0, err
	}
	now := s.now()
	switch set.Kind {
	case docindex.SetDelay:
		delay := dueMS(int64(min(set.Value, maxDelay)))
		if len(set.Key) == 0 {
			return s.setDefaultLocked(delay, now)
		}
		err = s.setLocked(&set, queuesched.Settings{Delay: &delay}, now)
	case docindex.SetBlock:
		until := int64(0)
		if set.Value > 0 { // the second itself is blocked, too
			until = dueMS(int64(min(set.Value, queuesched.Never/1000-2)) + 1)
		}
		err = s.setLocked(&set, queuesched.Settings{Blocked: &until}, now)
	case docindex.SetLimit:
		limit := uint32(min(set.Value, 1<<32-1))
		err = s.setLocked(&set, queuesched.Settings{Limit: &limit}, now)
	case docindex.SetActive:
		s.inactive = set.Value == 0
		if s.inactive {
			s.txn.b.Set(metaKey(metaPassive), nil, nil)
		} else {
			s.txn.b.Delete(metaKey(metaPassive), nil)
		}
	default:
		err = fmt.Errorf("setting %d: there is none", set.Kind)
	}
	if err != nil {
		s.txn.b.Close()
		s.txn.clear()
		return nil, 0, err
	}
	b, err = s.commitLocked()
	return b, s.journal.no, err
}

// setDefaultLocked lets go of the lock now and then, after the setting is committed.
func (s *Store) setDefaultLocked(delay, now int64) (b *pebble.Batch, no uint64, err error) {
	s.txn.b.Set(metaKey(metaDelay), binary.AppendVarint(nil, delay), nil)
	if b, err = s.commitLocked(); err != nil {
		return nil, 0, err
	}
	no = s.journal.no
	s.sched.SetDefaultDelay(delay)
	s.refreshLocked()
	return b, no, nil
}

func (s *Store) setLocked(set *docindex.Setting, to queuesched.Settings, now int64) error {
	if set.Host {
		return s.setOnHostLocked(set, to, now)
	}
	if !s.sched.Set(set.Crawl, set.Key, to, now) {
		return docindex.ErrTooMany
	}
	if id := s.sched.Find(set.Crawl, set.Key); id != 0 {
		s.rewriteRow(id)
		return nil
	}
	all, _ := s.sched.Preset(set.Crawl, set.Key)
	s.txn.b.Set(presetKey(set.Crawl, set.Key), appendSettings(nil, all), nil)
	return nil
}

// Settings is [docindex.Inspector.Settings].
func (s *Store) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	return embedded.VisitSettings(ctx, func(look func(d *queuesched.Scheduler, active bool, now int64)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		look(s.sched, !s.inactive, s.now())
	}, visit)
}

// Active is [docindex.Frontier.Active].
func (s *Store) Active(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.inactive, nil
}
