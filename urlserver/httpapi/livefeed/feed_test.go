package livefeed

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver"
)

// fake is a Source whose slots are set by a test.
type fake struct {
	mu      sync.Mutex // guards all except stop
	slots   []hostslots.SlotSummary
	status  urlserver.Status
	start   time.Time
	looks   int // slots read
	asked   int // statuses read
	blocked []hostslots.BlockedHost
	stop    func() // stops the Watcher
}

// do changes the fake while nobody reads it.
func (f *fake) do(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
}

func (f *fake) Status(context.Context) (s urlserver.Status, err error) {
	f.do(func() { f.asked++; s = f.status })
	return s, nil
}

func (f *fake) Summaries(_ context.Context, from int, dst []hostslots.SlotSummary) error {
	f.do(func() { f.looks += copy(dst, f.slots[from:]) })
	return nil
}

func (f *fake) SlotsNumbered(_ context.Context, numbers []uint32,
	_ int) (views []hostslots.SlotView, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range numbers {
		views = append(views, hostslots.SlotView{Slot: n, Group: "192.0.2.1",
			Gap: f.slots[n].Gap})
	}
	return views, nil
}

func (f *fake) Blocked(_ context.Context, most int) ([]hostslots.BlockedHost, int, error) {
	return f.blocked[:min(most, len(f.blocked))], len(f.blocked), nil
}

func (f *fake) RuleBlocked(context.Context, int) ([]string, bool, error) {
	return []string{"r.example"}, true, nil
}

func (f *fake) Date(t time.Duration) time.Time { return f.start.Add(t) }

// bubble runs a Watcher with a fake under virtual time.
func bubble(t *testing.T, slots int, test func(f *fake, w *Feed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{slots: make([]hostslots.SlotSummary, slots), start: time.Now()}
		w := New(Config{
			Source: f, SlotCount: slots, QueueLen: func() int { return 8 },
			Status:   func(s urlserver.Status) any { return map[string]uint64{"sent": s.Sent} },
			Warnings: func(uint64, int) (any, uint64) { return []string{}, 0 },
		})
		ctx, end := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { w.Run(ctx); close(ended) }()
		f.stop = func() { end(); <-ended }
		synctest.Wait()
		test(f, w)
		f.stop()
	})
}

// event is an event of a stream.
type event struct{ name, data string }

func events(text []byte) (all []event) {
	for _, block := range strings.Split(strings.TrimSuffix(string(text), "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(block, "\n")
		all = append(all, event{strings.TrimPrefix(name, "event: "), strings.TrimPrefix(data, "data: ")})
	}
	return all
}

// viewer is the map that a browser builds from a stream.
type viewer struct{ cells []byte }

func (v *viewer) take(t *testing.T, text []byte) {
	t.Helper()
	for _, e := range events(text) {
		if e.name != "slots" {
			if !json.Valid([]byte(e.data)) {
				t.Errorf("event %s: %s", e.name, e.data)
			}
			continue
		}
		from, data, _ := strings.Cut(e.data, " ")
		at, err := strconv.Atoi(from)
		packed, err2 := base64.StdEncoding.DecodeString(data)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		copy(v.cells[at/2:], packed)
	}
}

// packed returns all slots in the form of Map, built in the plainest way.
func packed(slots []hostslots.SlotSummary) []byte {
	out := make([]byte, (len(slots)+1)/2)
	for i, g := range slots {
		v := byte(0)
		if g.State != hostslots.Empty {
			v = byte(1 + 3*(int(g.State)-1))
			switch {
			case g.Docs >= 8:
				v += 2
			case g.Docs >= 4:
				v++
			}
		}
		out[i/2] |= v << (4 * (i % 2))
	}
	return out
}

// For any number of changed slots, a viewer gets them all after a while, and never more data than
// allowed.
func TestViewersKeepUp(t *testing.T) {
	const slots = 100_001
	bubble(t, slots, func(f *fake, w *Feed) {
		rng := rand.New(rand.NewPCG(1, 2))
		change := func(n int) {
			f.do(func() {
				for range n {
					f.slots[rng.IntN(slots)] = hostslots.SlotSummary{State: hostslots.State(
						rng.IntN(hostslots.States)), Docs: rng.Uint32N(12), Gap: time.Second}
				}
			})
		}
		change(slots)
		v, err := w.Subscribe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		cells, err := w.Map(context.Background())
		if err != nil || !slices.Equal(cells, packed(f.slots)) {
			t.Fatalf("the map is not as the slots are: %v", err)
		}
		eyes := &viewer{cells}
		most := 0
		for range 60 {
			change(slots / 10)
			text := <-v.C
			most = max(most, len(text))
			eyes.take(t, text)
		}
		for range slots/(chunksPerTick*chunkSlots) + 2 { // nothing changes, so everything is sent
			eyes.take(t, <-v.C)
		}
		if !slices.Equal(eyes.cells, packed(f.slots)) {
			t.Error("the viewer's map is not as the slots are")
		}
		text := <-v.C
		for _, e := range events(text) {
			if e.name == "slots" {
				t.Error("slots are told again that have not changed")
			}
		}
		if most > maxMessage {
			t.Errorf("%d bytes in a second", most)
		}
		w.Unsubscribe(v)
	})
}

// Without viewers there is one status every ten seconds, and nothing else.
func TestNoWorkForNobody(t *testing.T) {
	bubble(t, 10_000, func(f *fake, w *Feed) {
		watchFor := func(d time.Duration) (asked, looks int) {
			f.do(func() { asked, looks = f.asked, f.looks })
			time.Sleep(d)
			synctest.Wait()
			f.do(func() { asked, looks = f.asked-asked, f.looks-looks })
			return asked, looks
		}
		time.Sleep(Every / 2)
		if asked, looks := watchFor(10 * Every); asked != 10 || looks != 0 {
			t.Errorf("nobody looks: %d statuses, %d slots", asked, looks)
		}
		v, err := w.Subscribe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range v.C { // until it is dropped or unsubscribes
			}
		}()
		if asked, looks := watchFor(Every); asked < 10 || looks < 10_000 {
			t.Errorf("somebody looks: %d statuses, %d slots", asked, looks)
		}
		w.Unsubscribe(v)
		if asked, looks := watchFor(10 * Every); asked != 10 || looks != 0 {
			t.Errorf("nobody looks any more: %d statuses, %d slots", asked, looks)
		}
	})
}

func TestSlowViewersAreDropped(t *testing.T) {
	bubble(t, 1, func(f *fake, w *Feed) {
		slow, err := w.Subscribe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		quick, err := w.Subscribe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 * maxBehind {
			<-quick.C
		}
		n := 0
		for range slow.C {
			n++
		}
		if n != maxBehind {
			t.Errorf("the slow one got %d messages; want %d", n, maxBehind)
		}
		w.Unsubscribe(slow) // a second call is harmless
		w.Unsubscribe(quick)
	})
}

func TestViewersAreBounded(t *testing.T) {
	bubble(t, 1, func(f *fake, w *Feed) {
		var all []*Subscriber
		for range maxSubscribers {
			v, err := w.Subscribe(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, v)
		}
		if _, err := w.Subscribe(context.Background()); !errors.Is(err, ErrTooManySubscribers) {
			t.Errorf("one more: %v", err)
		}
		w.Unsubscribe(all[0])
		if _, err := w.Subscribe(context.Background()); err != nil {
			t.Errorf("one again: %v", err)
		}
	})
}

// The lists equal those of a read of all slots at once.
func TestTop(t *testing.T) {
	const slots = 3*chunkSlots + 7
	bubble(t, slots, func(f *fake, w *Feed) {
		rng := rand.New(rand.NewPCG(3, 4))
		var all []topEntry
		f.do(func() {
			f.blocked = []hostslots.BlockedHost{{Host: "b.example", Until: 2 * time.Hour},
				{Host: "a.example", Until: time.Hour}}
		})
		for i := range slots {
			g := hostslots.SlotSummary{State: hostslots.Ready, Docs: rng.Uint32N(500),
				Gap: time.Duration(rng.IntN(300)) * time.Second}
			if rng.IntN(3) == 0 {
				g = hostslots.SlotSummary{}
			} else {
				all = append(all, topEntry{slot: uint32(i), docs: g.Docs, gap: g.Gap})
			}
			f.do(func() { f.slots[i] = g })
		}
		top, err := w.Top(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		check := func(name string, got []Slot, order func(a, b topEntry) int) {
			slices.SortFunc(all, order)
			var want, have []uint32
			for _, e := range all[:topSlots] {
				want = append(want, e.slot)
			}
			for _, s := range got {
				have = append(have, s.Slot)
			}
			if !slices.Equal(have, want) {
				t.Errorf("%s: %v; want %v", name, have, want)
			}
		}
		check("busiest", top.Busiest, busier)
		check("slowest", top.Slowest, slower)
		want := fmt.Sprintf(
			`[{"host":"a.example","until":%q,"by":"operator"},{"host":"b.example","until":%q,"by":"operator"}][{"host":"r.example","until":null,"by":"rule"}]`,
			f.start.Add(time.Hour).UTC().Format(time.RFC3339Nano),
			f.start.Add(2*time.Hour).UTC().Format(time.RFC3339Nano))
		operator, err := json.Marshal(top.Blocked)
		ruled, err2 := json.Marshal(top.ByRule)
		if err := errors.Join(err, err2); err != nil || string(operator)+string(ruled) != want ||
			top.BlockedAll != 2 || !top.MoreByRule {
			t.Errorf("blocked: %s%s of %d, %v; want %s", operator, ruled, top.BlockedAll, err, want)
		}
	})
}

func TestHistory(t *testing.T) {
	bubble(t, 1, func(f *fake, w *Feed) {
		v, err := w.Subscribe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan int)
		go func() {
			n := 0
			for text := range v.C {
				n += strings.Count(string(text), "event: sample\n")
			}
			told <- n
		}()
		time.Sleep(Every / 2) // between two samples
		f.do(func() {
			f.status.Sent, f.status.Outcomes[docindex.Done] = 500, 300
			for range 100 {
				f.status.Delay.Observe(time.Millisecond)
			}
			f.status.DNS.Asked, f.status.DNS.Took = 4, 2*time.Second
			f.status.Classes[docindex.Class2xx], f.status.Classes[docindex.Class5xx],
				f.status.FetchTook = 200, 100, 30*time.Second
		})
		time.Sleep(2 * Every)
		all, err := w.History(context.Background())
		if err != nil || len(all) != 2 {
			t.Fatalf("%d samples, %v; want 2", len(all), err)
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		begin := f.start.Unix()
		want := fmt.Sprintf(
			`[{"at":%d,"sent":50,"outcomes":[30,0,0,0,0,0,0,0],"delay":[0.00075,0.000995],"index":null,"dns":0.5,"held":0,"leftover":0,"in_flight":0,"statuses":[20,0,0,10,0,0,0,0,0,0,0,0],"fetch":0.1},`+
				`{"at":%d,"sent":0,"outcomes":[0,0,0,0,0,0,0,0],"delay":[null,null],"index":null,"dns":null,"held":0,"leftover":0,"in_flight":0,"statuses":[0,0,0,0,0,0,0,0,0,0,0,0],"fetch":null}]`, begin+10, begin+20)
		if string(text) != want {
			t.Errorf("history\n%s; want\n%s", text, want)
		}
		time.Sleep(2 * time.Hour)
		all, err = w.History(context.Background())
		if err != nil || len(all) != samples || all[len(all)-1].At-all[0].At != 3600 {
			t.Errorf("after two hours %d samples, %v", len(all), err)
		}
		w.Unsubscribe(v)
		if n := <-told; n != 2+720 {
			t.Errorf("the viewer was told of %d samples; want %d", n, 2+720)
		}
	})
}

func TestStoppedWatcher(t *testing.T) {
	bubble(t, 1, func(f *fake, w *Feed) {
		v, err := w.Subscribe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		f.stop()
		for range v.C { // ends
		}
		if _, err := w.Map(context.Background()); !errors.Is(err, ErrStopped) {
			t.Errorf("Map: %v", err)
		}
		if _, err := w.Subscribe(context.Background()); !errors.Is(err, ErrStopped) {
			t.Errorf("Join: %v", err)
		}
		w.Unsubscribe(v)
	})
}

// A message that would be too long is sent in part: the beginning of a list, the latest warnings.
// The rest may follow.
func TestMessagesFit(t *testing.T) {
	w := &Feed{cfg: Config{Warnings: func(after uint64, most int) (any, uint64) {
		return slices.Repeat([]string{strings.Repeat("w", 1000)}, most), after + 20
	}}}
	name := strings.Repeat("n", 253)
	long := Top{Busiest: make([]Slot, 16), Slowest: make([]Slot, 16), Blocked: make([]Blocked, 16),
		ByRule: make([]Blocked, 16)}
	for i := range long.Busiest {
		long.Busiest[i].Hosts, long.Slowest[i].Hosts, long.Blocked[i].Host = []string{name, name, name},
			[]string{name, name, name}, name
	}
	for _, c := range []struct {
		name string
		room int
		last uint64
		want []string // events beside the first one
	}{
		{name: "room for some", room: maxMessage, last: 20, want: []string{"warnings", "top"}},
		{name: "for a warning and a short list", room: 3000, last: 20, want: []string{"warnings", "top"}},
		{name: "for an empty list", room: 600, want: []string{"top"}},
		{name: "for nothing", room: 50},
	} {
		var m message
		m.add("status", strings.Repeat("s", max(0, maxMessage-c.room-40)))
		if last := w.addWarnings(&m, 0); last != c.last {
			t.Errorf("%s: the last warning told is %d; want %d", c.name, last, c.last)
		}
		m.addTop(long)
		var got []string
		for _, e := range events(m.text)[1:] {
			got = append(got, e.name)
		}
		if !slices.Equal(got, c.want) || len(m.text) > maxMessage {
			t.Errorf("%s: %d bytes of %q; want %q", c.name, len(m.text), got, c.want)
		}
	}
}
