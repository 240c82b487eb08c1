package export_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/export"
	"urlserver/docindex/memory"
)

// TestWhileBusy dumps a store that others put to, get from and set: all that was there before is in
// it, once.
func TestWhileBusy(t *testing.T) {
	s := memory.New()
	const n = 2500
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"discovered":{"info":{"url":"http://h%d.test/before/%d"}}}`+"\n", i%40, i)
	}
	read(t, s, text.String())
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for w := range 3 {
		busy.Go(func() {
			for i := 0; i < 2000 && ctx.Err() == nil; i++ {
				if err := disturb(t.Context(), s, w, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		out := write(t, s)
		if got := strings.Count(out, "/before/"); got != n {
			t.Errorf("%d of %d URLs are in the dump", got, n)
		}
		read(t, memory.New(), out)
	}
	stop()
	busy.Wait()
}

// disturb puts, gets, reports and sets something.
func disturb(ctx context.Context, s docindex.Store, worker, i int) error {
	text := fmt.Sprintf(`{"discovered":{"info":{"url":"http://h%d.test/new/%d/%d"}}}`+"\n"+
		`{"set":"delay","key":"h%d.test","value":%d}`, i%60, worker, i, i%80, i%3)
	if res, err := export.Read(ctx, s, strings.NewReader(text)); err != nil || res.Invalid > 0 {
		return fmt.Errorf("read: %+v, %w", res, err)
	}
	var done docindex.Puts
	err := s.Serve(ctx, docindex.Request{AnyCrawl: true, MaxQueues: 3, PerQueue: uint32(1 + i%4),
		Lease: time.Minute}, func(h *docindex.Served) error {
		for j := range h.Len() {
			p := h.At(j)
			p.Update, p.Due = true, docindex.Never
			if err := done.AddExact(p, docindex.HostOf(p.URL)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		_, err = s.Put(ctx, &done)
	}
	return err
}

// full is where every write fails for want of room.
const full = "/dev/full"

func TestNoRoom(t *testing.T) {
	f, err := os.OpenFile(full, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("%v: what a full disk does is not tried", err)
	}
	defer f.Close()
	s := memory.New()
	read(t, s, line("http://a.test/"))
	if err := export.Write(t.Context(), s, f); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Write to a full disk: %v", err)
	}
}
