package hostslots

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestNothingIsSentWhenTheLeaseEndedSinceTheTick: the caller's clock may jump between two sends.
func TestNothingIsSentWhenTheLeaseEndedSinceTheTick(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 2, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Leases: true,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	s.Offer(0, Candidate{Origin: o, ID: []byte("1"), URL: []byte("http://a.test/"), Priority: 0})
	s.Host(s.HostOf(o)).QueueOwnRequest(0, 1, FirstTry)
	id := s.NextWantedLease()
	if id == 0 {
		t.Fatal("a group with something to send wants no lease")
	}
	const end = 10 * time.Second
	s.Group(id).LeaseGranted(0, end)
	s.Tick(end - 1)
	if until := s.Host(s.HostOf(o)).LeasedUntil(); until != end {
		t.Errorf("LeasedUntil = %v; want %v", until, end)
	}
	if _, _, _, ok := s.NextOwnRequest(end, FirstTry); ok {
		t.Error("NextOwnRequest lets a request go when the lease has ended")
	}
	if _, _, ok := s.Next(end); ok {
		t.Error("Next lets a document go when the lease has ended")
	}
	if id := s.NextWantedLease(); id == 0 {
		t.Error("the group wants no lease again")
	}
}

// TestLeaseAgain: a group whose request is to be made again is returned at once, and that is no denial.
func TestLeaseAgain(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Leases: true,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	s.Offer(0, Candidate{Origin: o, ID: []byte("1"), URL: []byte("http://a.test/")})
	id := s.NextWantedLease()
	for range 20 {
		if s.Group(id).LeaseAgain(); s.NextWantedLease() != id {
			t.Fatal("the group is not returned again")
		}
	}
	s.Group(id).LeaseDenied(0, time.Hour)
	if s.Tick(firstDenial - 1); s.NextWantedLease() != 0 {
		t.Error("the group is returned before firstDenial after its first denial")
	}
	if s.Tick(firstDenial); s.NextWantedLease() != id {
		t.Error("the group is not returned firstDenial after its first denial")
	}
	s.Group(id).LeaseGranted(firstDenial, time.Hour)
	if s.Group(id).LeaseAgain(); s.NextWantedLease() != 0 {
		t.Error("a group that has its lease is returned")
	}
}

// TestLeaseIsKeptThroughAPause: a group whose documents wait for robots.txt needs no lease for a
// moment.
func TestLeaseIsKeptThroughAPause(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Leases: true,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	s.Offer(0, Candidate{Origin: o, ID: []byte("1"), URL: []byte("http://a.test/"), Priority: 0})
	id := s.NextWantedLease()
	s.Group(id).LeaseGranted(0, time.Hour)
	s.Origin(o).SetRobotsPending(0, true)
	s.Origin(o).SetRobotsPending(0, false)
	if got := s.ReleasedLeases(0, 0, nil); len(got) != 0 || !s.Group(id).Leased() || s.NextWantedLease() != 0 {
		t.Errorf("Released = %v; want the lease kept", got)
	}
	s.Origin(o).SetRobotsPending(0, true)
	s.Origin(o).SetRobotsPending(0, true)
	if got := s.ReleasedLeases(0, 0, nil); len(got) != 1 || got[0] != id || s.Group(id).Leased() {
		t.Errorf("Released = %v; want %d, once", got, id)
	}
}

// TestPreemptedGroupIsReleased: a group that has used its quota loses its lease with its slot, so
// that another daemon may have the group while it waits.
func TestPreemptedGroupIsReleased(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 1, Concurrent: 1, Gap: time.Second, StatusTimeout: time.Minute, MaxAttempts: 3,
		Patience: time.Minute, RejectOver: 100, Remember: 100, Leases: true,
	})
	var groups []uint32
	for _, name := range []string{"a.test", "b.test"} {
		o := s.EnsureOrigin([]byte("http://"+name), []byte(name))
		s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.AddrFrom4([4]byte{10, 0, 0, name[0]})})
		for _, id := range []string{"1", "2"} {
			s.Offer(0, Candidate{
				Origin: o, ID: []byte(name + id), URL: []byte("http://" + name + "/" + id), Priority: 0,
			})
		}
		groups = append(groups, s.hosts.At(s.HostOf(o)).group)
	}
	a, now := s.NextWantedLease(), time.Second
	if a != groups[0] || s.NextWantedLease() != 0 {
		t.Fatalf("group %d wants a lease; want %d alone, which has the slot", a, groups[0])
	}
	s.Group(a).LeaseGranted(now, time.Minute)
	turn, _, ok := s.Next(now)
	if !ok {
		t.Fatal("nothing may be sent")
	}
	trans := s.Send(now, turn, 1)
	s.End(now, s.Done(now, trans, 200, 0))
	if got := s.ReleasedLeases(now, 0, nil); !slices.Equal(got, groups[:1]) || s.Group(a).Leased() {
		t.Errorf("released are %v; want %v", got, groups[:1])
	}
	if b := s.NextWantedLease(); b != groups[1] {
		t.Errorf("group %d wants a lease then; want %d", b, groups[1])
	}
}

// TestSiteWithoutItsAddressGivesUpItsSlot: the lease of the address that a site group is at was denied,
// so the slot is of no use to the group while another one waits.
func TestSiteWithoutItsAddressGivesUpItsSlot(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, Gap: time.Second, StatusTimeout: time.Minute, MaxAttempts: 3,
		Patience: time.Minute, RejectOver: 100, Remember: 100, Leases: true,
	})
	var groups []uint32
	for n, name := range []string{"a.test", "b.test"} {
		o := s.EnsureOrigin([]byte("http://"+name), []byte(name))
		s.Host(s.HostOf(o)).Bind(0, Place{
			Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), Group: []string{"site", ""}[n],
		})
		s.Offer(0, Candidate{Origin: o, ID: []byte(name), URL: []byte("http://" + name), Priority: 0})
		groups = append(groups, s.hosts.At(s.HostOf(o)).group)
	}
	now := time.Second
	s.Group(s.NextWantedLease()).LeaseGranted(now, time.Hour)
	if turn, _, ok := s.Next(now); ok {
		t.Fatalf("%s may be asked without the lease of its address", s.Host(turn.Host).Name())
	}
	address := s.NextWantedLease()
	if name := s.Group(address).Name(); name != "10.0.0.0" || !s.Group(address).HasSites() {
		t.Fatalf("the lease of %s is wanted; want that of the address", name)
	}
	if v := s.Host(s.FindHost([]byte("a.test"))).View(); v.Unleased != address {
		t.Errorf("the view says that group %d is not leased; want %d", v.Unleased, address)
	}
	s.Group(address).LeaseDenied(now, time.Minute)
	if got := s.ReleasedLeases(now, 0, nil); !slices.Equal(got, groups[:1]) {
		t.Errorf("released are %v; want the site's group", got)
	}
	if id := s.NextWantedLease(); id != groups[1] {
		t.Errorf("group %d wants a lease; want %d, which has the slot now", id, groups[1])
	}
	s.Tick(now + firstDenial)
	if id := s.NextWantedLease(); id != address {
		t.Errorf("group %d wants a lease when the denial is over; want the address", id)
	}
}

// TestLeaseOfAnAddressOutlastsTheGapOfItsSites: a request to a site group needs the lease of the address
// for a moment only, and the next one needs it again.
func TestLeaseOfAnAddressOutlastsTheGapOfItsSites(t *testing.T) {
	const gap = time.Second
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, Gap: gap, StatusTimeout: time.Minute, MaxAttempts: 3,
		Patience: time.Minute, RejectOver: 100, Remember: 100, Leases: true,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	h := s.Host(s.HostOf(o))
	h.Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1"), Group: "site"})
	for _, id := range []string{"1", "2", "3"} {
		s.Offer(0, Candidate{Origin: o, ID: []byte(id), URL: []byte("http://a.test/" + id), Priority: 0})
	}
	s.Group(s.NextWantedLease()).LeaseGranted(gap, time.Hour)
	s.Next(gap)
	address := s.NextWantedLease()
	s.Group(address).LeaseGranted(gap, time.Minute)
	if until := h.LeasedUntil(); until != time.Minute {
		t.Errorf("requests may be sent until %v; want a minute, the sooner end of both leases", until)
	}
	for now := gap; now <= 3*gap; now += gap {
		turn, _, ok := s.Next(now)
		if !ok {
			t.Fatalf("nothing may be sent at %v", now)
		}
		s.End(now, s.Done(now, s.Send(now, turn, 1), 200, 0))
		if got := s.ReleasedLeases(now, 2*gap, nil); now < 3*gap && len(got) > 0 {
			t.Fatalf("%v are released at %v; want none", got, now)
		}
	}
	s.ReleasedLeases(5*gap, 2*gap, nil)
	if s.Group(address).Leased() {
		t.Error("the lease of the address is kept with nothing to send")
	}
}

// TestReleasedGroupIsFreeWhenItsSitesAre: another daemon knows nothing of the sites of an address,
// so it may have the address when the gap of each has passed.
func TestReleasedGroupIsFreeWhenItsSitesAre(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 2, Gap: time.Second, SiteGap: 10 * time.Second, StatusTimeout: time.Minute,
		MaxAttempts: 3, Patience: 20 * time.Second, RejectOver: 100, Remember: 100, Leases: true,
	})
	addr := netip.AddrFrom4([4]byte{10, 0, 0, 1})
	for _, name := range []string{"a.test", "b.test"} {
		o := s.EnsureOrigin([]byte("http://"+name), []byte(name))
		s.Host(s.HostOf(o)).Bind(0, Place{Addr: addr})
		s.Offer(0, Candidate{Origin: o, ID: []byte(name), URL: []byte("http://" + name + "/"), Priority: 0})
	}
	s.Next(10 * time.Second) // when the sites may be asked
	id := s.NextWantedLease()
	s.Group(id).LeaseGranted(0, time.Hour)
	send := func(now time.Duration) {
		turn, wait, ok := s.Next(now)
		if !ok {
			t.Fatalf("nothing may be sent at %v, but after %v", now, wait)
		}
		s.End(now, s.Done(now, s.Send(now, turn, 1), 200, 0))
	}
	send(10 * time.Second)
	if got := s.Group(id).FreeFrom(); got != 20*time.Second {
		t.Errorf("free from %v; want 20 s, when the gap of the first site has passed", got)
	}
	s.Host(s.EnsureHost([]byte("b.test"))).SetCrawlDelay(11*time.Second, 15*time.Second)
	send(15 * time.Second)
	if got := s.Group(id).FreeFrom(); got != 30*time.Second {
		t.Errorf("free from %v; want 30 s, when the Crawl-delay of the second site has passed", got)
	}
	if got := s.ReleasedLeases(15*time.Second, 0, nil); len(got) != 1 {
		t.Errorf("released are %v; want the group", got)
	}
}

// TestHostsAreRejectedAsLongAsTheirGroupIsDenied, whether it needs a lease or not, and no longer.
func TestHostsAreRejectedAsLongAsTheirGroupIsDenied(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Leases: true,
	})
	host := s.EnsureHost([]byte("a.test"))
	s.Host(host).QueueOwnRequest(0, 1, FirstTry)
	s.Host(host).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	id := s.NextWantedLease()
	s.Group(id).LeaseGranted(0, time.Hour)
	if _, _, _, ok := s.NextOwnRequest(0, FirstTry); !ok {
		t.Fatal("the request does not go out")
	}
	s.Group(id).LeaseDenied(0, time.Minute) // it could not be extended
	s.Host(host).OwnRequestDone(0, Feedback{})
	s.Tick(firstDenial - 1)
	if got := rejects(s); !slices.Equal(got, []string{"a.test"}) {
		t.Errorf("rejected are %v; want the host of the group that was denied", got)
	}
	s.Tick(firstDenial)
	if got := rejects(s); len(got) > 0 {
		t.Errorf("rejected are %v; want none, as the denial is over", got)
	}
}

// TestDeniedLeaseIsNotWantedTooEarly: another document for the group changes nothing.
func TestDeniedLeaseIsNotWantedTooEarly(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Leases: true,
	})
	var origins []uint32
	for i, name := range []string{"a.test", "b.test"} {
		o := s.EnsureOrigin([]byte("http://"+name), []byte(name))
		s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})})
		s.Offer(0, Candidate{Origin: o, ID: []byte(name), URL: []byte("http://" + name), Priority: 0})
		origins = append(origins, o)
	}
	s.Group(s.NextWantedLease()).LeaseDenied(0, time.Minute)
	s.Group(s.NextWantedLease()).LeaseGranted(0, time.Hour) // the slot is the other one's now
	s.Offer(0, Candidate{
		Origin: origins[0], ID: []byte("1"), URL: []byte("http://a.test/1"), Priority: 0,
	})
	turn, _, ok := s.Next(0)
	if !ok {
		t.Fatal("nothing may be sent")
	}
	s.End(0, s.Done(0, s.Send(0, turn, 1), 200, 0)) // it is free again
	s.Tick(firstDenial - 1)
	if id := s.NextWantedLease(); id != 0 {
		t.Errorf("group %d wants a lease before its denial is over", id)
	}
	s.Tick(firstDenial)
	if id := s.NextWantedLease(); id == 0 {
		t.Error("no group wants a lease when the denial is over")
	}
}

func rejects(s *Slots) (names []string) {
	s.Rejects(func(name []byte) { names = append(names, string(name)) })
	return names
}

// TestReleaseIsDeferredUntilTheGapHasPassed: no other daemon could use the group sooner, and more
// documents may come.
func TestReleaseIsDeferredUntilTheGapHasPassed(t *testing.T) {
	const gap, linger = 2 * time.Second, 5 * time.Second
	for _, tc := range []struct {
		name   string
		linger time.Duration
		lease  time.Duration // the end of the lease
		sent   bool
		want   time.Duration // when it is released
	}{
		{name: "kept", linger: linger, lease: time.Minute, sent: true, want: 2 * gap},
		{name: "not at all", lease: time.Minute, sent: true, want: gap},
		{name: "not so long", linger: gap - 1, lease: time.Minute, sent: true, want: gap},
		{name: "the lease would end", linger: linger, lease: 2 * gap, sent: true, want: gap},
		{name: "it may be asked now", linger: linger, lease: time.Minute, want: gap},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(Config{
				Count: 1, Len: 8, Concurrent: 1, Gap: gap, MaxAttempts: 1, StatusTimeout: time.Hour,
				RejectOver: 9, Leases: true,
			})
			o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
			s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
			s.Offer(0, Candidate{Origin: o, ID: []byte("1"), URL: []byte("http://a.test/"), Priority: 0})
			id := s.NextWantedLease()
			s.Group(id).LeaseGranted(gap, tc.lease)
			turn, _, ok := s.Next(gap)
			if !ok {
				t.Fatal("nothing may be sent")
			}
			if tc.sent {
				s.End(gap, s.Done(gap, s.Send(gap, turn, 1), 200, 0))
			} else {
				s.DequeueSelected(gap, turn)
				s.End(gap, turn.Doc)
			}
			early := s.ReleasedLeases(2*gap-1, 0, s.ReleasedLeases(gap, tc.linger, nil))
			late := s.ReleasedLeases(2*gap, 0, nil)
			if kept := len(early) == 0; kept != (tc.want > gap) || len(early)+len(late) != 1 || s.Group(id).Leased() {
				t.Errorf("released are %v and, when the gap has passed, %v; want one at %v",
					early, late, tc.want)
			}
		})
	}
}

// TestDeferredLeaseIsUsedAgain: documents that come before the release are sent under the lease.
// TestLeaseIsKeptWhileTheAddressIsLookedUp: a group does not lose its lease to a look-up.
func TestLeaseIsKeptWhileTheAddressIsLookedUp(t *testing.T) {
	const linger, start = time.Second, 10 * time.Second // at start no gap is to be waited for
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, Gap: time.Second, MaxAttempts: 1, StatusTimeout: time.Hour,
		RejectOver: 9, Leases: true,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	h := s.Host(s.HostOf(o))
	h.Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	s.Offer(0, Candidate{Origin: o, ID: []byte("1"), URL: []byte("http://a.test/"), Priority: 0})
	id := s.NextWantedLease()
	s.Group(id).LeaseGranted(start, time.Minute)
	h.SetAddressPending(start, true)
	if got := s.ReleasedLeases(start, linger, nil); len(got) != 0 {
		t.Errorf("released as the look-up begins are %v; want none", got)
	}
	h.SetAddressPending(start+linger/2, false)
	if got := s.ReleasedLeases(start+linger, linger, nil); len(got) != 0 || !s.Group(id).Leased() {
		t.Errorf("released after the look-up are %v; want none", got)
	}
	h.SetAddressPending(start+2*linger, true)
	s.ReleasedLeases(start+2*linger, linger, nil)
	if got := s.ReleasedLeases(start+3*linger, linger, nil); len(got) != 1 {
		t.Errorf("released during a slow look-up are %v; want the group", got)
	}
}

func TestDeferredLeaseIsUsedAgain(t *testing.T) {
	const gap = 2 * time.Second
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, Gap: gap, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9,
		Leases: true,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	s.Offer(0, Candidate{Origin: o, ID: []byte("1"), URL: []byte("http://a.test/1"), Priority: 0})
	id := s.NextWantedLease()
	s.Group(id).LeaseGranted(gap, time.Minute)
	now := gap
	for n := range byte(3) {
		turn, _, ok := s.Next(now)
		if !ok {
			t.Fatalf("document %d may not be sent", n)
		}
		s.End(now, s.Done(now, s.Send(now, turn, 1), 200, 0))
		if got := s.ReleasedLeases(now, time.Minute, nil); len(got) > 0 || s.Wait(now) != gap {
			t.Fatalf("released are %v, and the next wait is %v; want none, and the gap", got, s.Wait(now))
		}
		s.Offer(now+1, Candidate{
			Origin: o, ID: []byte{'2' + n}, URL: []byte("http://a.test/2"), Priority: 0,
		})
		if now += gap; len(s.ReleasedLeases(now, 0, nil)) > 0 || s.NextWantedLease() != 0 {
			t.Fatal("the group does not go on under its lease")
		}
	}
}

// TestReleasedGroupKeepsRetryAfter: another daemon may not have an address before the Retry-After of
// one of its sites has passed, whether a document or robots.txt met it.
func TestReleasedGroupKeepsRetryAfter(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 2, Gap: time.Second, SiteGap: time.Second, StatusTimeout: time.Minute,
		MaxAttempts: 3, Patience: 20 * time.Second, RejectOver: 100, Remember: 100, Leases: true,
	})
	var hosts []Host
	for _, name := range []string{"a.test", "b.test"} {
		o := s.EnsureOrigin([]byte("http://"+name), []byte(name))
		h := s.Host(s.HostOf(o))
		h.Bind(0, Place{Addr: netip.AddrFrom4([4]byte{10, 0, 0, 1})})
		s.Offer(0, Candidate{Origin: o, ID: []byte(name), URL: []byte("http://" + name + "/"), Priority: 0})
		hosts = append(hosts, h)
	}
	s.Next(10 * time.Second)
	id := s.NextWantedLease()
	s.Group(id).LeaseGranted(0, time.Hour)
	turn, _, ok := s.Next(10 * time.Second)
	if !ok {
		t.Fatal("nothing may be sent")
	}
	s.End(11*time.Second, s.Done(11*time.Second, s.Send(10*time.Second, turn, 1), 429, 9*time.Second))
	if got := s.Group(id).FreeFrom(); got != 20*time.Second {
		t.Errorf("after a 429: free from %v; want 20 s", got)
	}
	hosts[1].QueueOwnRequest(11*time.Second, 7, FirstTry)
	if _, _, _, ok := s.NextOwnRequest(12*time.Second, FirstTry); !ok {
		t.Fatal("no request may be sent")
	}
	hosts[1].OwnRequestDone(13*time.Second, Feedback{Status: 503, RetryAfter: 15 * time.Second})
	if got := s.Group(id).FreeFrom(); got != 28*time.Second {
		t.Errorf("after a robots.txt with 503: free from %v; want 28 s", got)
	}
	hosts[0].SetCrawlDelay(21*time.Second, time.Hour)
	if got := s.Group(id).FreeFrom(); got != 41*time.Second {
		t.Errorf("after a Crawl-delay: free from %v; want 41 s, when patience ends", got)
	}
}
