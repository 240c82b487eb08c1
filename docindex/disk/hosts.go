package disk

import (
	"context"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// HostStatus is [docindex.Inspector.HostStatus].
func (s *Store) HostStatus(ctx context.Context, host []byte) (docindex.HostStatus, error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return docindex.HostStatus{}, err
	}
	defer s.txn.clear()
	now := s.base.Now()
	s.base.CatchUpLocked(now)
	if err := s.findDuesLocked(host, now); err != nil {
		return docindex.HostStatus{}, err
	}
	return embedded.HostStatus(s.base.Sched, host, !s.base.Inactive, now), ctx.Err()
}

const maxDues = 100 // queues that one HostStatus reads

// findDuesLocked reads the due times of a host's queues that the store has not read since it was
// opened.
func (s *Store) findDuesLocked(host []byte, now int64) error {
	var unread []uint32
	s.base.Sched.QueuesOf(host, func(id uint32) bool {
		if s.queues.at(id).due == 0 {
			unread = append(unread, id)
		}
		return len(unread) < maxDues
	})
	var w queueIterator
	for _, id := range unread {
		if err := s.docs.iterate(&w, id); err != nil {
			return err
		}
		s.queues.setDue(id, w.due(), now)
	}
	return w.close()
}

// setOnHostLocked applies a setting of a host, and writes its row.
func (s *Store) setOnHostLocked(set *docindex.Setting, to queuesched.Settings, now int64) error {
	if err := embedded.SetHostOverride(s.base.Sched, set, to, now); err != nil {
		return err
	}
	t := &s.txn
	t.key = append(append(t.key[:0], hostOverrideRow), set.Key...)
	if all := s.base.Sched.HostOverride(set.Key); all != (queuesched.Settings{}) {
		t.value = appendSettings(t.value[:0], all)
		t.set()
	} else {
		t.b.Delete(t.key, nil)
	}
	return nil
}

// hostOverride reads the row of a host's settings and applies them.
func (l *loading) hostOverride(key, value []byte) error {
	set, err := readSettings(value)
	if err != nil || len(key) == 1 {
		return errRow
	}
	l.s.base.Sched.SetHostOverride(key[1:], set, l.now)
	if l.s.base.Sched.HostOverride(key[1:]) == (queuesched.Settings{}) { // its only setting was a block that has ended
		l.stale = append(l.stale, append([]byte{}, key...))
	}
	return nil
}
