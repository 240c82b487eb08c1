package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/robots"
)

// TestRecalledDocumentsAreGivenBack recalls a document that is held, one at a spider, and one that
// is on its way from the index.
func TestRecalledDocumentsAreGivenBack(t *testing.T) {
	e := paced(3, func(c *configs.Config) { c.ReqHostConcurrent = 9 })
	e.Connected("spider")
	if sent := stepAt(e, 10*second); sent != 1 {
		t.Fatalf("sent %d documents at once; want 1", sent)
	}
	e.intake.asking = true
	var o docindex.Outcomes
	for _, id := range []string{"0", "1", "late", "unknown"} {
		o.Add(docindex.Outcome{DocID: []byte(id)})
	}
	e.Recalled(&o)
	p := &Prepared{}
	p.Batch.Add([]byte("late"), []byte(site+"/late"), 0)
	p.Prepare()
	e.Answered(p)
	for now := 10 * second; now < 20*second; now += second / 2 {
		stepAt(e, now)
	}
	got := []string{}
	for i := range e.Out.Returns.Len() {
		got = append(got, string(e.Out.Returns.At(i).DocID))
	}
	if want := "[1 late]"; fmt.Sprint(got) != want || e.stats.Sent != 2 {
		t.Errorf("given back %v, and %d sent; want %s and 2", got, e.stats.Sent, want)
	}
	if n := len(e.outcomes.returnOnTurn) + len(e.outcomes.returnOnArrival); n != 1 { // the one at the spider
		t.Errorf("%d documents are still wanted back; want 1", n)
	}
}

// TestRecallAll recalls all documents while one is at a spider, one is queued, and one is on its way
// from the index: none of them is sent any more. What the index hands out later is.
func TestRecallAll(t *testing.T) {
	e := paced(3, func(c *configs.Config) { c.ReqHostConcurrent = 9 })
	id := e.Connected("spider")
	if sent := stepAt(e, 10*second); sent != 1 {
		t.Fatalf("sent %d documents at once; want 1", sent)
	}
	e.intake.asking = true
	e.RecallAll()
	answer := func(ids ...string) {
		p := &Prepared{}
		for _, id := range ids {
			p.Batch.Add([]byte(id), []byte(site+"/"+id), 0)
		}
		p.Prepare()
		e.Answered(p)
	}
	given := func() string {
		ids := []string{}
		for i := range e.Out.Returns.Len() {
			ids = append(ids, string(e.Out.Returns.At(i).DocID))
		}
		e.Out.Returns.Reset()
		slices.Sort(ids)
		return fmt.Sprint(ids)
	}
	answer("late")
	for now := 10 * second; now < 20*second; now += second / 2 {
		stepAt(e, now)
	}
	if got := given(); got != "[1 2 late]" || e.stats.Sent != 1 {
		t.Errorf("given back %s, and %d sent; want [1 2 late] and 1", got, e.stats.Sent)
	}
	e.Gone(id)
	stepAt(e, 20*second)
	if got := given(); got != "[0]" {
		t.Errorf("given back %s when the spider had gone; want [0]", got)
	}
	e.Connected("spider")
	e.intake.asking = true
	answer("new")
	stepAt(e, 40*second)
	if got := given(); got != "[]" || e.stats.Sent != 2 {
		t.Errorf("given back %s, and %d sent; want none and 2", got, e.stats.Sent)
	}
}

// TestRecalledOnItsWayIsGivenBackAtOnce, though it has no turn: its host is blocked, and there is
// no spider.
func TestRecalledOnItsWayIsGivenBackAtOnce(t *testing.T) {
	e := paced(0, func(*configs.Config) {})
	e.intake.asking = true
	e.Block([]byte("a.example"), time.Hour)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: []byte("late")})
	e.Recalled(&o)
	p := &Prepared{}
	p.Batch.Add([]byte("late"), []byte(site+"/late"), 0)
	p.Prepare()
	e.Answered(p)
	stepAt(e, 11*second)
	if n, held := e.Out.Returns.Len(), e.Stats().Slots.Held; n != 1 || held != 0 {
		t.Errorf("%d documents are given back, and %d held; want 1 and none", n, held)
	}
}

// TestRecalledFromALostSpiderIsGivenBackAtOnce, though it has no turn: its host is blocked.
func TestRecalledFromALostSpiderIsGivenBackAtOnce(t *testing.T) {
	e := paced(1, func(*configs.Config) {})
	id := e.Connected("spider")
	if sent := stepAt(e, 10*second); sent != 1 {
		t.Fatalf("sent %d documents; want 1", sent)
	}
	e.Block([]byte("a.example"), time.Hour)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: []byte("0")})
	e.Recalled(&o)
	e.Gone(id)
	stepAt(e, 11*second)
	if n, held := e.Out.Returns.Len(), e.Stats().Slots.Held; n != 1 || held != 0 {
		t.Errorf("%d documents are given back, and %d held; want 1 and none", n, held)
	}
	if n := len(e.outcomes.returnOnTurn); n != 0 {
		t.Errorf("%d documents are still wanted back; want none", n)
	}
}

// TestGivesBackAfterALoss has the only spider of an index that others use go, three times: all that
// it had goes back at once. What is known of the document that may have killed it is not forgotten,
// so that one ends.
func TestGivesBackAfterALoss(t *testing.T) {
	for _, spoke := range []bool{false, true} {
		e := paced(4, func(c *configs.Config) { c.ReqHostConcurrent = 9 })
		e.opt.Shared = true
		now := 10 * second
		for loss := range 3 {
			id := e.Connected("spider")
			now += time.Minute
			stepAt(e, now)
			e.spiders.byID[id].spoke = spoke
			e.Output(id, nil)
			e.Written(id)
			e.Advance(now+second, time.Time{})
			e.Gone(id)
			stepAt(e, now+second)
			back, ended := e.Out.Returns.Len(), e.Out.Outcomes.Len()
			if want := loss / 2; back != 4-want || ended != want {
				t.Fatalf("spoke: %v: after loss %d, %d of 4 are given back, %d ended; want %d ended, the others back",
					spoke, loss+1, back, ended, want)
			}
			e.Out.Returns.Reset()
			e.intake.asking = true
			e.Answered(offered(4))
		}
	}
}

// TestGivesBackWhileNoSpiderTakesDocuments: the spider of an index that others use says ROOM 0. After
// roomGrace all that is not at the spider goes back, and the index is not asked until the spider has
// room again. Where nobody else uses the index, everything stays.
func TestGivesBackWhileNoSpiderTakesDocuments(t *testing.T) {
	for _, shared := range []bool{true, false} {
		e := paced(4, func(c *configs.Config) { c.ReqHostConcurrent = 9 })
		e.opt.Shared = shared
		id := e.Connected("spider")
		room := func(at time.Duration, n int) {
			e.Advance(at, time.Time{})
			e.Lines(id, []Line{{IsRoom: true, Room: n}})
			e.Step(nil)
		}
		back := func(at time.Duration, want int) {
			t.Helper()
			e.Out.Ask, e.intake.asking = nil, false
			stepAt(e, at)
			if !shared {
				want = 0
			}
			if got, asks := e.Out.Returns.Len(), e.Out.Ask != nil; got != want || asks != (want == 0) {
				t.Fatalf("shared: %v: %d of 4 are given back at %v, and the index is asked: %v; want %d and %v",
					shared, got, at, asks, want, want == 0)
			}
		}
		stepAt(e, 10*second)
		room(11*second, 0)
		back(11*second+roomGrace/2, 0)
		room(11*second+roomGrace*3/4, 1)
		room(11*second+roomGrace*7/8, 0)
		back(11*second+roomGrace*3/2, 0)
		if wait := e.Step(nil); wait <= 0 || wait > roomGrace {
			t.Errorf("the next step is due in %v; want one when the documents go back", wait)
		}
		back(11*second+roomGrace*2, 3)
		e.Out.Returns.Reset()
		room(15*second, 5)
		back(16*second, 0)
		e.Gone(id)
		back(17*second, 1)
	}
}

// TestBlockedWhileTheRequestIsOpen blocks a host that a robots.txt redirects to while that is
// fetched there, for which this process has no room: who waits for it learns that it is blocked, as
// where the block came before.
func TestBlockedWhileTheRequestIsOpen(t *testing.T) {
	e := paced(1, func(c *configs.Config) { c.Robots.Enabled = true })
	e.Connected("spider")
	stepAt(e, 10*second)
	e.Fetched(e.Out.Fetches[0].ID, robots.Response{Status: 302, Location: "http://other.test/robots.txt"})
	e.Out.Fetches = nil
	stepAt(e, 12*second)
	e.Block([]byte("other.test"), time.Hour)
	e.Fetched(e.Out.Fetches[0].ID, robots.Response{Err: robots.ErrBusy})
	if n := len(e.robots.open); n != 0 {
		t.Errorf("%d fetches of robots.txt wait for a blocked host; want none", n)
	}
}

// TestHealthChecksOfTheSpiderPort: beside a spider that says ROOM 0 others connect and end all the time and
// are sent nothing. The documents go back all the same.
func TestHealthChecksOfTheSpiderPort(t *testing.T) {
	e := paced(4, func(*configs.Config) {})
	e.opt.Shared = true
	now := 10 * second
	e.Lines(e.Connected("spider"), []Line{{IsRoom: true, Room: 0}})
	for until := now + 3*roomGrace; now < until; now += roomGrace / 2 {
		stepAt(e, now)
		check := e.Connected("check")
		e.AwaitHandshake(check)
		e.Step(nil)
		e.Gone(check)
	}
	if stepAt(e, now); e.slots.Counts().Held > 0 {
		t.Errorf("%d of 4 documents are still held", e.slots.Counts().Held)
	}
}

// TestHealthChecksCostTheIndexNothing: connections that say nothing and end at once, as those of health checks,
// do not make the daemon ask an index that others use. One that stays is a spider's, also if it says nothing.
func TestHealthChecksCostTheIndexNothing(t *testing.T) {
	e := paced(0, func(*configs.Config) {})
	e.opt.Shared = true
	now := 10 * second
	connect := func() (id uint32) {
		id = e.Connected("a")
		e.AwaitHandshake(id)
		stepAt(e, now)
		return id
	}
	for range 10 {
		now += second / 5
		e.Advance(now, time.Time{})
		e.Gone(connect())
		if stepAt(e, now); e.Out.Ask != nil {
			t.Fatalf("the index is asked at %v, for a connection that said nothing and has ended", now)
		}
	}
	now += second
	e.Advance(now, time.Time{})
	reads := connect()
	if wait := e.Step(nil); wait != handshakeGrace || e.Out.Ask != nil {
		t.Errorf("the next step is due in %v, and the index is asked: %v; want %v and false", wait, e.Out.Ask != nil,
			handshakeGrace)
	}
	if stepAt(e, now+handshakeGrace); e.Out.Ask == nil {
		t.Errorf("the index is not asked for a spider that is connected for %v", handshakeGrace)
	}
	e.Gone(reads)
	e.Out.Ask, e.intake.asking = nil, false
	now += second
	e.Advance(now, time.Time{})
	e.Lines(connect(), []Line{{IsRoom: true, Room: 1}})
	if e.Step(nil); e.Out.Ask == nil {
		t.Error("the index is not asked for a spider that says ROOM 1")
	}
}

// TestRoomZeroWhileACheckIsConnected: a spider says ROOM 0 for a moment while the connection of a health
// check is open, which ends last. The documents stay for the moment.
func TestRoomZeroWhileACheckIsConnected(t *testing.T) {
	e := paced(4, func(*configs.Config) {})
	e.opt.Shared = true
	now := 10 * second
	id := e.Connected("spider")
	stepAt(e, now)
	held := e.slots.Counts().Held
	check := e.Connected("check")
	e.AwaitHandshake(check)
	now += 100 * second
	e.Advance(now, start.Add(now))
	e.Lines(id, []Line{{IsRoom: true, Room: 0}})
	e.Gone(check)
	if stepAt(e, now+roomGrace/2); e.slots.Counts().Held != held || held == 0 {
		t.Errorf("%d of %d documents are held half of roomGrace after ROOM 0", e.slots.Counts().Held, held)
	}
	if stepAt(e, now+roomGrace); e.slots.Counts().Held >= held {
		t.Errorf("%d of %d documents are held at the end of roomGrace", e.slots.Counts().Held, held)
	}
}

// TestOfferedWhileDocumentsGoBack: when some of the documents have gone back, an answer of the index that
// was under way offers these again. All go back without another event.
func TestOfferedWhileDocumentsGoBack(t *testing.T) {
	const documents = 1500 // more than a Step gives back
	e := paced(0, func(c *configs.Config) { c.Leftover.Max = 2 * documents })
	e.opt.Shared = true
	id := e.Connected("spider")
	e.Lines(id, []Line{{IsRoom: true, Room: 0}})
	now := 10 * second
	answered := func(n int) {
		e.Out.Ask, e.intake.asking = nil, true
		p := &Prepared{}
		for i := range n {
			p.Batch.Add(fmt.Append(nil, "d", i), fmt.Appendf(nil, "http://h%d.test/", i), 0)
		}
		p.Prepare()
		e.Answered(p)
		e.Advance(now, time.Time{})
		for e.intake.batch != nil {
			e.Step(nil)
		}
	}
	answered(documents)
	now += roomGrace
	e.Advance(now, time.Time{})
	e.Step(nil)
	some := e.Out.Returns.Len()
	if some == 0 || some >= documents {
		t.Fatalf("a step gives %d of %d documents back; want a part", some, documents)
	}
	answered(some)
	for e.Step(nil) == 0 {
	}
	if got := e.Out.Returns.Len(); got != documents+some || e.slots.Counts().Held != 0 {
		t.Errorf("%d documents went back, %d are held; want %d and none", got, e.slots.Counts().Held, documents+some)
	}
}

// TestRoomWhileDocumentsGoBack: a spider says ROOM 1 after some of the documents went back, the index offers
// these again, and the spider says ROOM 0. All go back then.
func TestRoomWhileDocumentsGoBack(t *testing.T) {
	const documents = 1500 // more than a Step gives back
	e := paced(1, func(c *configs.Config) { c.Leftover.Max, c.Spider.MaxInFlight = 2*documents, 1 })
	e.opt.Shared = true
	now := 10 * second
	id := e.Connected("spider")
	offer := func(n int) {
		e.Out.Ask, e.intake.asking = nil, true
		p := &Prepared{}
		for i := range n {
			p.Batch.Add(fmt.Append(nil, "d", i), fmt.Appendf(nil, "http://h%d.test/", i), 0)
		}
		p.Prepare()
		e.Answered(p)
		for e.intake.batch != nil {
			now += second / 100
			stepAt(e, now)
		}
	}
	room := func(n int) {
		e.Lines(id, []Line{{IsRoom: true, Room: n}})
		now += roomGrace
	}
	offer(documents)
	room(0)
	stepAt(e, now)
	some := e.Out.Returns.Len()
	if some == 0 || some >= documents {
		t.Fatalf("a step gives %d of %d documents back; want a part", some, documents)
	}
	room(1)
	e.Out.Returns.Reset()
	offer(some)
	room(0)
	for e.Advance(now, time.Time{}); e.Step(nil) == 0; {
	}
	if c := e.slots.Counts(); c.Held != c.InFlight {
		t.Errorf("%d documents stay; want none but what is at the spider", c.Held-c.InFlight)
	}
}

// TestSpiderConnectsAgain: a spider ends and connects again soon, which gets no document before it says
// something or handshakeGrace has passed. The slots keep what they have, and ask for no more without it. When it
// stays away, all goes back.
func TestSpiderConnectsAgain(t *testing.T) {
	e := paced(4, func(*configs.Config) {})
	e.opt.Shared, e.opt.GoneGrace = true, 5*second
	now := 10 * second
	for i := range 3 {
		e.Advance(now, time.Time{})
		id := e.Connected("spider")
		if i > 0 {
			e.AwaitHandshake(id)
		}
		stepAt(e, now)
		stepAt(e, now+handshakeGrace)
		e.Out.Ask, e.intake.asking = nil, false
		now += second
		e.Advance(now, time.Time{})
		e.Gone(id)
		e.Step(nil)
		now += e.opt.GoneGrace - second/100
		stepAt(e, now)
		if n := e.Out.Returns.Len(); n > 0 || e.Out.Ask != nil {
			t.Fatalf("%d documents go back, and the index is asked: %v; want none and false", n, e.Out.Ask != nil)
		}
	}
	if wait := e.Step(nil); wait <= 0 || wait > second/100 {
		t.Errorf("the next step is due in %v; want one when the documents go back", wait)
	}
	if stepAt(e, now+second/100); e.Out.Returns.Len() != 4 {
		t.Errorf("%d of 4 documents go back when the spider stays away", e.Out.Returns.Len())
	}
}
