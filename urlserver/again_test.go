package urlserver

import (
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// TestPutAgainWhileOneIsOut: an index forgets its documents and receives others while the first is
// at a spider. The index uses its numbers again, so a new document has the DOC_ID of that one.
func TestPutAgainWhileOneIsOut(t *testing.T) {
	for name, forget := range map[string]func(t *testing.T, store docindex.Store) (int, error){
		"purge": func(t *testing.T, store docindex.Store) (int, error) {
			return store.Purge(t.Context(), docindex.Scope{}, time.Now().Add(time.Hour))
		},
		"delete": func(t *testing.T, store docindex.Store) (int, error) {
			return store.Delete(t.Context(), docindex.Scope{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				put(t, store, "http://10.0.0.1/1", "http://10.0.0.1/2")
				b := (&bubble{t: t}).start(nil, Parts{Index: store, Store: store})
				defer b.stopped()
				s := b.spider()
				first, _ := s.line()
				if n, err := forget(t, store); n != 2 || err != nil {
					t.Fatalf("forgot %d documents: %v", n, err)
				}
				put(t, store, "http://10.0.0.1/3", "http://10.0.0.1/4", "http://10.0.0.1/5")
				time.Sleep(time.Minute)
				s.say("%s DONE", first)
				if err := s.conn.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					trans, _ := s.line()
					s.say("%s DONE", trans)
				}
				synctest.Wait()
				if st := store.Stats(); st.Completed != 3 || st.Scheduled+st.InTransit != 0 {
					t.Errorf("the store has %+v; want 3 completed documents", st)
				}
			})
		})
	}
}
