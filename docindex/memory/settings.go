package memory

import (
	"context"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// Settings is [docindex.Inspector.Settings].
func (m *Store) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	return embedded.VisitSettings(ctx, func(look func(d *queuesched.Scheduler, active bool, now int64)) {
		m.mu.Lock()
		defer m.mu.Unlock()
		look(m.sched, !m.inactive, m.now())
	}, visit)
}
