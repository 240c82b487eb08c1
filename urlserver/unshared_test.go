package urlserver

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/reservation"
	reservations "urlserver/reservation/memory"
)

// newAddress starts a daemon with spiders and URL Frontier clients, whose hosts are all at one
// address. The address may be asked once a second.
func newAddress(t *testing.T, rules ...configs.HostRule) *bubble {
	t.Helper()
	b := startAddress(t, hostsFile(t), "me", reservations.New(reservations.Config{}), addressLease, rules...)
	time.Sleep(time.Minute) // all counts as just asked at the start
	return b
}

// hostsFile returns the name of a hosts file with many names of one address.
func hostsFile(t *testing.T) string {
	t.Helper()
	name, names := filepath.Join(t.TempDir(), "hosts"), "10.0.0.9 a.test b.test"
	for i := range addressHosts {
		names += fmt.Sprintf(" h%d.test", i)
	}
	if err := os.WriteFile(name, []byte(names+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// startAddress starts a daemon of newAddress, with an index of its own.
func startAddress(t *testing.T, hosts, holder string, shared reservation.Store, lease time.Duration,
	rules ...configs.HostRule) *bubble {
	t.Helper()
	store := memory.New()
	b := &bubble{t: t, hosts: hosts, store: store}
	return b.start(func(c *configs.Config) {
		c.Frontier.Listen, c.Frontier.Addresses = "127.0.0.1:0", true // nobody listens there
		c.Rules = rules
	}, Parts{Index: store, Store: store, Reserver: &Reserver{Store: shared, Lease: lease, Holder: holder,
		Log: zerolog.Nop()}})
}

const (
	addressLease = 4 * time.Second
	addressHosts = 20
)

// reload puts other rules in force.
func (b *bubble) reload(rules ...configs.HostRule) {
	b.t.Helper()
	cfg := b.d.Settings()
	cfg.Rules = rules
	if _, _, err := b.d.Reconfigure(b.t.Context(), cfg); err != nil {
		b.t.Fatal(err)
	}
}

// get takes a URL and reports it as completed at once.
func (b *bubble) get(url string) (at time.Time) {
	b.t.Helper()
	at = b.take(url)
	b.completed(url)
	return at
}

// take waits for a URL as a client does. It returns when the URL was given out.
func (b *bubble) take(url string) (at time.Time) {
	b.t.Helper()
	r := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	for end := time.Now().Add(time.Hour); at.IsZero(); time.Sleep(10 * time.Millisecond) {
		err := b.store.Serve(b.t.Context(), r, func(s *docindex.Served) error {
			if got := string(s.At(0).URL); got != url || s.Len() > 1 {
				b.t.Fatalf("clients get %d URLs, %s first; want %s", s.Len(), got, url)
			}
			at = time.Now()
			return nil
		})
		if err != nil || time.Now().After(end) {
			b.t.Fatalf("%s is not given out: %v", url, err)
		}
	}
	return at
}

// completed reports a URL as completed, as a client does.
func (b *bubble) completed(url string) {
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte(url), Update: true, Due: docindex.Never}); err != nil {
		b.t.Error(err)
	}
	if _, err := b.store.Put(b.t.Context(), &p); err != nil {
		b.t.Error(err)
	}
}

// fetch waits for a document as a spider does, which is done at once. It returns when it came.
func (b *bubble) fetch() (at time.Time) {
	s := b.spider()
	trans, _ := s.line()
	at = time.Now()
	s.say("%s DONE 200", trans)
	s.conn.Close()
	synctest.Wait()
	return at
}

// sharedBy is the rule of a shared network on which the address is, and so many requests may be open.
func sharedBy(concurrent int) configs.HostRule {
	return configs.HostRule{Shared: true, PerSec: 8, Concurrent: concurrent,
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
}

// TestAddressLeavesASharedNetwork: an address was asked as a part of a shared network, without its
// lease. Then a reload takes it off. Whoever asks it next, for another host, keeps its pace.
func TestAddressLeavesASharedNetwork(t *testing.T) {
	const first, second = "http://a.test/", "http://b.test/"
	for name, ask := range map[string]func(b *bubble) (before, after time.Time){
		"a spider after a client": func(b *bubble) (before, after time.Time) {
			put(b.t, b.store, first)
			before = b.get(first)
			b.reload()
			put(b.t, b.store, second)
			return before, b.fetch()
		},
		"a client after a spider": func(b *bubble) (before, after time.Time) {
			put(b.t, b.store, first)
			before = b.fetch()
			b.reload()
			put(b.t, b.store, second)
			return before, b.get(second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newAddress(t, sharedBy(8))
				before, after := ask(b)
				gap := after.Sub(before)
				t.Logf("%v between the two", gap)
				if gap < time.Second || gap > 3*addressLease {
					t.Errorf("%v between two requests to the address; want a second at least, and soon", gap)
				}
				b.stopped()
			})
		})
	}
}

// TestOpenURLCountsAfterAReload: a client has a URL for some leases while a reload takes its address
// off a shared network, or puts it on one with one open request. No spider asks another host there
// before the client has reported it.
func TestOpenURLCountsAfterAReload(t *testing.T) {
	const first, second = "http://a.test/", "http://b.test/"
	for name, rules := range map[string][2][]configs.HostRule{
		"the address leaves a network": {{sharedBy(8)}, nil},
		"the address joins a network":  {nil, {sharedBy(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newAddress(t, rules[0]...)
				put(t, b.store, first)
				b.take(first)
				b.reload(rules[1]...)
				put(t, b.store, second)
				var ended time.Time
				time.AfterFunc(5*addressLease, func() {
					ended = time.Now()
					b.completed(first)
				})
				if wait := b.fetch().Sub(ended); ended.IsZero() || wait < 0 || wait > 3*addressLease {
					t.Errorf("a spider is sent the other URL %v after the client's has ended (%v)", wait, ended)
				}
				b.stopped()
			})
		})
	}
}
