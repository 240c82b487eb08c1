package netguard_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/internal/netguard"
	"urlserver/internal/testkit/certstest"
)

const period = 10 * time.Second

// watched is a ServerTLS whose files are watched under virtual time, and the results of its
// reloads.
type watched struct {
	t   *testing.T
	own certstest.Certificate

	mu   sync.Mutex // guards told
	told []error
}

// watch runs do half a period before the files are read.
func watch(t *testing.T, do func(w *watched)) {
	w := &watched{t: t, own: certstest.New(t)}
	synctest.Test(t, func(t *testing.T) {
		s, err := netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_", Cert: w.own.Cert,
			Private: w.own.Key})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		go s.Watch(ctx, period, func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, err)
		})
		time.Sleep(period / 2)
		do(w)
		end()
	})
}

// pass waits for some periods, and checks the number of reloads since the start and whether the
// last one succeeded.
func (w *watched) pass(looks, told int, well bool) {
	w.t.Helper()
	time.Sleep(time.Duration(looks) * period)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.told) != told || told > 0 && (w.told[told-1] == nil) != well {
		w.t.Errorf("after %d looks more: read again %d times, last: %v; want %d times, well: %v", looks,
			len(w.told), w.told, told, well)
	}
}

func TestWatch(t *testing.T) {
	other, third := certstest.New(t), certstest.New(t)
	for _, x := range []struct {
		name string
		do   func(w *watched)
	}{
		{name: "nothing changes", do: func(w *watched) { w.pass(100, 0, true) }},
		{name: "both files at once", do: func(w *watched) {
			other.Write(t, w.own.Cert, w.own.Key)
			w.pass(1, 0, true)
			w.pass(1, 1, true)
			w.pass(100, 1, true)
		}},
		{name: "one after the other", do: func(w *watched) {
			replace(w.t, w.own.Cert, other.CertificatePEM)
			w.pass(1, 0, true)
			replace(w.t, w.own.Key, other.KeyPEM)
			w.pass(1, 0, true)
			w.pass(1, 1, true)
		}},
		{name: "broken, once, and then mended", do: func(w *watched) {
			replace(w.t, w.own.Key, []byte("broken"))
			w.pass(2, 1, false)
			w.pass(100, 1, false)
			third.Write(t, w.own.Cert, w.own.Key)
			w.pass(2, 2, true)
		}},
		{name: "gone and back", do: func(w *watched) {
			if err := os.Remove(w.own.Key); err != nil {
				w.t.Fatal(err)
			}
			w.pass(2, 1, false)
			replace(w.t, w.own.Key, w.own.KeyPEM)
			w.pass(2, 2, true)
		}},
	} {
		t.Run(x.name, func(t *testing.T) { watch(t, x.do) })
	}
}

func replace(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files that a signal has reloaded are not reloaded again.
func TestWatchAfterReload(t *testing.T) {
	own, other := certstest.New(t), certstest.New(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_",
			Cert: own.Cert, Private: own.Key})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		go s.Watch(ctx, period, func(err error) { t.Errorf("read again: %v", err) })
		other.Write(t, own.Cert, own.Key)
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * period)
		end()
	})
}
