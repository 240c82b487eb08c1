package memory

import (
	"context"
	"fmt"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// portionBytes bounds a portion of a Serve, about.
const portionBytes = 256 << 10

// serveCall is one Serve on its way.
type serveCall struct {
	r      docindex.Request
	cursor queuesched.Cursor
	out    docindex.Served

	gave bool
	soon <-chan struct{} // where nothing could be given, and something may be when this is closed
	wait embedded.WaitBudget
}

// Serve is [docindex.Frontier.Serve].
func (m *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	v := serveCall{r: r}
	m.begin(&v)
	defer m.finish(&v)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.out.Reset()
		more = m.serveSome(&v)
		if v.out.Len() == 0 {
			more = more || m.retry(ctx, &v)
			continue
		}
		v.gave = true
		if err := give(&v.out); err != nil {
			return err
		}
	}
	return nil
}

// retry begins a call anew that found nothing, once that may have changed; false: it has found nothing.
func (m *Store) retry(ctx context.Context, v *serveCall) bool {
	if !v.wait.Wait(ctx, v.soon) {
		return false
	}
	m.begin(v)
	return true
}

func (m *Store) begin(v *serveCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for m.catchUpLocked(now) { // for the whole call; what it costs is owed once
		m.mu.Unlock()
		m.mu.Lock()
	}
	v.cursor = m.sched.Begin(embedded.Query(&v.r))
}

// finish gives back the queue that was being served.
func (m *Store) finish(v *serveCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaveLocked(v, m.now())
}

func (m *Store) leaveLocked(v *serveCall, now int64) {
	if v.cursor.Queue != 0 {
		m.sched.Release(&v.cursor, m.dueLocked(v.cursor.Queue), now, m.nowUp())
	}
}

// serveSome fills a portion. more says that there is another one.
func (m *Store) serveSome(v *serveCall) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v.soon = nil
	if m.inactive {
		return false
	}
	now := m.now()
	m.purges = lockBatch
	for m.sched.Next(&v.cursor) {
		if m.fillLocked(v, now) {
			return true
		}
		m.leaveLocked(v, now)
	}
	if !v.gave && v.out.Len() == 0 && m.sched.MayRetry(&v.cursor) {
		v.soon = m.notifier.Next()
	}
	return false
}

// fillLocked gives out what the queue may give; full says that the portion ended before.
func (m *Store) fillLocked(v *serveCall, now int64) (full bool) {
	queue := v.cursor.Queue
	for left := m.sched.Left(&v.cursor); left > 0; left-- {
		if v.out.Len() >= lockBatch || v.out.Size() >= portionBytes {
			return true
		}
		id := m.pickLocked(queue, queuesched.FrontierConsumer, now)
		if id == 0 {
			return false
		}
		r := m.docs.records.At(id)
		m.dispatchLocked(id, queuesched.FrontierConsumer, leaseEnd(now, v.r.Lease), now)
		v.out.Add(m.docs.url(r), m.sched.Key(queue), m.sched.Crawl(queue), m.docs.extra(r).metadata)
		v.cursor.Gave = true
	}
	return false
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
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	switch s.Kind {
	case docindex.SetDelay:
		return m.setDelayLocked(s, now)
	case docindex.SetBlock:
		until := int64(0)
		if s.Value > 0 { // the second itself is blocked, too
			until = dueMS(int64(min(s.Value, docindex.Never/1000-2)) + 1)
		}
		return m.setLocked(&s, queuesched.Settings{Blocked: &until}, now)
	case docindex.SetLimit:
		limit := uint32(min(s.Value, 1<<32-1))
		return m.setLocked(&s, queuesched.Settings{Limit: &limit}, now)
	case docindex.SetActive:
		m.inactive = s.Value == 0
		return nil
	}
	return fmt.Errorf("setting %d: there is none", s.Kind)
}

func (m *Store) setDelayLocked(s docindex.Setting, now int64) error {
	delay := dueMS(int64(min(s.Value, maxDelay)))
	if len(s.Key) > 0 {
		return m.setLocked(&s, queuesched.Settings{Delay: &delay}, now)
	}
	m.sched.SetDefaultDelay(delay)
	m.refreshLocked()
	return nil
}

func (m *Store) setLocked(s *docindex.Setting, to queuesched.Settings, now int64) error {
	if s.Host {
		return embedded.SetHostOverride(m.sched, s, to, now)
	}
	if !m.sched.Set(s.Crawl, s.Key, to, now) {
		return docindex.ErrTooMany
	}
	return nil
}

// maxDelay is the longest delay, in seconds: what the interface can say.
const maxDelay = 1<<32 - 1

// Active is [docindex.Frontier.Active].
func (m *Store) Active(context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.inactive, nil
}
