package hostslots

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestNothingGoesOutOnAClaimThatEndedSinceTheTick: the caller's clock may jump between two sends.
func TestNothingGoesOutOnAClaimThatEndedSinceTheTick(t *testing.T) {
	s := New(Config{Count: 1, Len: 8, Concurrent: 2, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Claims: true})
	o := s.Origin([]byte("http://a.test"), []byte("a.test"))
	s.Bind(0, s.HostOf(o), netip.MustParseAddr("10.0.0.1"))
	s.Offer(0, o, []byte("1"), []byte("http://a.test/"), 0)
	s.Ask(0, s.HostOf(o), 1, First)
	id := s.Wanted()
	if id == 0 {
		t.Fatal("a group with something to send wants no claim")
	}
	const end = 10 * time.Second
	s.Granted(0, id, end)
	s.Tick(end - 1)
	if until := s.ClaimedUntil(s.HostOf(o)); until != end {
		t.Errorf("ClaimedUntil = %v; want %v", until, end)
	}
	if _, _, _, ok := s.NextAsk(end, First); ok {
		t.Error("NextAsk lets a request go when the claim has ended")
	}
	if _, _, ok := s.Next(end); ok {
		t.Error("Next lets a document go when the claim has ended")
	}
	if id := s.Wanted(); id == 0 {
		t.Error("the group wants no claim again")
	}
}

// TestClaimIsKeptThroughAPause: while its documents wait for robots.txt a group needs no claim for a moment.
func TestClaimIsKeptThroughAPause(t *testing.T) {
	s := New(Config{Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Claims: true})
	o := s.Origin([]byte("http://a.test"), []byte("a.test"))
	s.Bind(0, s.HostOf(o), netip.MustParseAddr("10.0.0.1"))
	s.Offer(0, o, []byte("1"), []byte("http://a.test/"), 0)
	id := s.Wanted()
	s.Granted(0, id, time.Hour)
	s.Hold(0, o, true)
	s.Hold(0, o, false)
	if got := s.Released(0, 0, nil); len(got) != 0 || !s.Claimed(id) || s.Wanted() != 0 {
		t.Errorf("Released = %v; want the claim kept", got)
	}
	s.Hold(0, o, true)
	s.Hold(0, o, true)
	if got := s.Released(0, 0, nil); len(got) != 1 || got[0] != id || s.Claimed(id) {
		t.Errorf("Released = %v; want %d, once", got, id)
	}
}

// A group whose turn is over gives its claim back with its slot, so that others may have it while it waits.
func TestSpentGroupIsReleased(t *testing.T) {
	s := New(Config{
		Count: 1, Len: 1, Concurrent: 1, Gap: time.Second, StatusTimeout: time.Minute, MaxAttempts: 3,
		Patience: time.Minute, RejectOver: 100, Remember: 100, Claims: true,
	})
	var groups []uint32
	for _, name := range []string{"a.test", "b.test"} {
		o := s.Origin([]byte("http://"+name), []byte(name))
		s.Bind(0, s.HostOf(o), netip.AddrFrom4([4]byte{10, 0, 0, name[0]}))
		for _, id := range []string{"1", "2"} {
			s.Offer(0, o, []byte(name+id), []byte("http://"+name+"/"+id), 0)
		}
		groups = append(groups, s.hosts.At(s.HostOf(o)).group)
	}
	a, now := s.Wanted(), time.Second
	if a != groups[0] || s.Wanted() != 0 {
		t.Fatalf("group %d is to be claimed; want %d alone, which has the slot", a, groups[0])
	}
	s.Granted(now, a, time.Minute)
	turn, _, ok := s.Next(now)
	if !ok {
		t.Fatal("nothing may be sent")
	}
	trans := s.Send(now, turn, 1)
	s.End(now, s.Done(now, trans, 200, 0))
	if got := s.Released(now, 0, nil); !slices.Equal(got, groups[:1]) || s.Claimed(a) {
		t.Errorf("released are %v; want %v", got, groups[:1])
	}
	if b := s.Wanted(); b != groups[1] {
		t.Errorf("group %d is to be claimed then; want %d", b, groups[1])
	}
}

// TestHostsAreRejectedAsLongAsTheirGroupIsRefused and no longer, whether it needs a claim or not.
func TestHostsAreRejectedAsLongAsTheirGroupIsRefused(t *testing.T) {
	s := New(Config{Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Claims: true})
	host := s.Ensure([]byte("a.test"))
	s.Ask(0, host, 1, First)
	s.Bind(0, host, netip.MustParseAddr("10.0.0.1"))
	id := s.Wanted()
	s.Granted(0, id, time.Hour)
	if _, _, _, ok := s.NextAsk(0, First); !ok {
		t.Fatal("the request does not go out")
	}
	s.Refused(0, id, time.Minute) // it could not be extended
	s.Asked(0, host, Feedback{})
	s.Tick(firstRefusal - 1)
	if got := rejects(s); !slices.Equal(got, []string{"a.test"}) {
		t.Errorf("rejected are %v; want the host of the group that was refused", got)
	}
	s.Tick(firstRefusal)
	if got := rejects(s); len(got) > 0 {
		t.Errorf("rejected are %v; want none, as the refusal is over", got)
	}
}

// TestRefusedGroupIsNotAskedForTooEarly: another document for it changes nothing.
func TestRefusedGroupIsNotAskedForTooEarly(t *testing.T) {
	s := New(Config{Count: 1, Len: 8, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Claims: true})
	var origins []uint32
	for i, name := range []string{"a.test", "b.test"} {
		o := s.Origin([]byte("http://"+name), []byte(name))
		s.Bind(0, s.HostOf(o), netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
		s.Offer(0, o, []byte(name), []byte("http://"+name), 0)
		origins = append(origins, o)
	}
	s.Refused(0, s.Wanted(), time.Minute)
	s.Granted(0, s.Wanted(), time.Hour) // the slot is the other one's now
	s.Offer(0, origins[0], []byte("1"), []byte("http://a.test/1"), 0)
	turn, _, ok := s.Next(0)
	if !ok {
		t.Fatal("nothing may be sent")
	}
	s.End(0, s.Done(0, s.Send(0, turn, 1), 200, 0)) // it is free again
	s.Tick(firstRefusal - 1)
	if id := s.Wanted(); id != 0 {
		t.Errorf("group %d is to be claimed before its refusal is over", id)
	}
	s.Tick(firstRefusal)
	if id := s.Wanted(); id == 0 {
		t.Error("nothing is to be claimed when the refusal is over")
	}
}

func rejects(s *Slots) (names []string) {
	s.Rejects(func(name []byte) { names = append(names, string(name)) })
	return names
}

// TestClaimLingersUntilTheGapHasPassed: nobody else could use it sooner, and documents may come back.
func TestClaimLingersUntilTheGapHasPassed(t *testing.T) {
	const gap, linger = 2 * time.Second, 5 * time.Second
	for _, tc := range []struct {
		name   string
		linger time.Duration
		lease  time.Duration // until when the group is claimed
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
			s := New(Config{Count: 1, Len: 8, Concurrent: 1, Gap: gap, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Claims: true})
			o := s.Origin([]byte("http://a.test"), []byte("a.test"))
			s.Bind(0, s.HostOf(o), netip.MustParseAddr("10.0.0.1"))
			s.Offer(0, o, []byte("1"), []byte("http://a.test/"), 0)
			id := s.Wanted()
			s.Granted(gap, id, tc.lease)
			turn, _, ok := s.Next(gap)
			if !ok {
				t.Fatal("nothing may be sent")
			}
			if tc.sent {
				s.End(gap, s.Done(gap, s.Send(gap, turn, 1), 200, 0))
			} else {
				s.Refuse(gap, turn)
				s.End(gap, turn.Doc)
			}
			early := s.Released(2*gap-1, 0, s.Released(gap, tc.linger, nil))
			late := s.Released(2*gap, 0, nil)
			if kept := len(early) == 0; kept != (tc.want > gap) || len(early)+len(late) != 1 || s.Claimed(id) {
				t.Errorf("released are %v and, when the gap has passed, %v; want one at %v", early, late, tc.want)
			}
		})
	}
}

// TestLingeringClaimIsUsedAgain: documents that come while it lingers go out on it.
func TestLingeringClaimIsUsedAgain(t *testing.T) {
	const gap = 2 * time.Second
	s := New(Config{Count: 1, Len: 8, Concurrent: 1, Gap: gap, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: 9, Claims: true})
	o := s.Origin([]byte("http://a.test"), []byte("a.test"))
	s.Bind(0, s.HostOf(o), netip.MustParseAddr("10.0.0.1"))
	s.Offer(0, o, []byte("1"), []byte("http://a.test/1"), 0)
	id := s.Wanted()
	s.Granted(gap, id, time.Minute)
	now := gap
	for n := range byte(3) {
		turn, _, ok := s.Next(now)
		if !ok {
			t.Fatalf("document %d may not be sent", n)
		}
		s.End(now, s.Done(now, s.Send(now, turn, 1), 200, 0))
		if got := s.Released(now, time.Minute, nil); len(got) > 0 || s.Wait(now) != gap {
			t.Fatalf("released are %v, and the next wait is %v; want none, and the gap", got, s.Wait(now))
		}
		s.Offer(now+1, o, []byte{'2' + n}, []byte("http://a.test/2"), 0)
		if now += gap; len(s.Released(now, 0, nil)) > 0 || s.Wanted() != 0 {
			t.Fatal("the group does not go on with its claim")
		}
	}
}
