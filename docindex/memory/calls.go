package memory

import (
	"context"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// portionBytes bounds a portion of a Serve, roughly.
const portionBytes = 256 << 10

// Serve is [docindex.Frontier.Serve].
func (m *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	v := embedded.Serving{Request: r}
	if err := m.base.BeginServing(&v); err != nil {
		return err
	}
	if v.Recall {
		if err := m.recall(ctx, docindex.Setting{}); err != nil {
			return err
		}
	}
	defer m.endServing(&v)
	return m.base.Serve(ctx, &v, func() (bool, error) { return m.serveSome(&v), nil }, give)
}

// endServing releases the queue that is being served.
func (m *Store) endServing(v *embedded.Serving) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	m.releaseLocked(v, m.base.Now())
}

func (m *Store) releaseLocked(v *embedded.Serving, now int64) {
	if v.Cursor.Queue != 0 {
		m.base.Sched.Release(&v.Cursor, m.dueLocked(v.Cursor.Queue), now, m.base.NowUp())
	}
}

// serveSome fills a portion. more reports whether there is another one.
func (m *Store) serveSome(v *embedded.Serving) (more bool) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if !m.base.Inactive {
		more = m.fillSomeLocked(v)
		m.base.PortionDoneLocked(v, more)
	}
	return more
}

func (m *Store) fillSomeLocked(v *embedded.Serving) (more bool) {
	now := m.base.Now()
	m.purges = embedded.LockBatch
	m.base.BeginPortionLocked(v, now)
	for m.base.Sched.Next(&v.Cursor, now) {
		if m.fillLocked(v, now) {
			return true
		}
		m.releaseLocked(v, now)
	}
	return false
}

// fillLocked hands out URLs of the current queue. full reports whether the portion has no room for
// further URLs.
func (m *Store) fillLocked(v *embedded.Serving, now int64) (full bool) {
	queue := v.Cursor.Queue
	for left := m.base.Sched.Left(&v.Cursor); left > 0; left-- {
		if v.Out.Len() >= embedded.LockBatch || v.Out.Size() >= portionBytes {
			return true
		}
		id := m.pickLocked(queue, queuesched.FrontierConsumer, now)
		if id == 0 {
			return false
		}
		r := m.docs.records.At(id)
		m.dispatchLocked(id, queuesched.FrontierConsumer, v.Until, now)
		v.Add(id, m.docs.url(r), m.base.Sched.Key(queue), m.base.Sched.Crawl(queue), m.docs.extra(r).packed)
		v.Cursor.Gave = true
	}
	return false
}

// Answered is [docindex.Frontier.Answered].
func (m *Store) Answered(ctx context.Context, all []docindex.HostAnswer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	for i := range all {
		m.base.Sched.Answered(&all[i], m.base.Now())
	}
	return nil
}

// Set is [docindex.Frontier.Set].
func (m *Store) Set(ctx context.Context, s docindex.Setting) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	if err := m.set(s); err != nil || s.Kind == docindex.SetActive {
		return err
	}
	return m.recall(ctx, s)
}

func (m *Store) set(s docindex.Setting) error {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if s.Kind == docindex.SetActive {
		m.base.Inactive = s.Value == 0
		return nil
	}
	to, err := embedded.SettingsOf(&s)
	if err != nil {
		return err
	}
	if s.Kind == docindex.SetDelay && len(s.Key) == 0 {
		m.base.Sched.SetDefaultDelay(*to.Delay)
		m.base.RefreshLocked()
		return nil
	}
	return m.setLocked(&s, to, m.base.Now())
}

func (m *Store) setLocked(s *docindex.Setting, to queuesched.Settings, now int64) error {
	if s.Host {
		return embedded.SetHostOverride(m.base.Sched, s, to, now)
	}
	if !m.base.Sched.Set(s.Crawl, s.Key, to, now) {
		return docindex.ErrTooMany
	}
	return nil
}
