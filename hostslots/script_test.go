package hostslots

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// script plays a script of commands for Slots: one a line, with "=>" and what it must return;
// without "=>" it must return nothing. "+ 5s" lets so much time pass, "at 5s" sets the time. Hosts,
// origins ("host:port") and documents have names of the script's.
type script struct {
	s       *Slots
	cfg     Config
	now     time.Duration
	open    map[string]TransID // by document
	closed  map[string]TransID
	origins map[string]uint32
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p *script
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		command, want, _ := strings.Cut(line, "=>")
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		if words[0] == "slots" {
			p = newScript(words[1:])
			continue
		}
		if got := p.do(words[0], words[1:]); got != strings.Join(strings.Fields(want), " ") {
			t.Fatalf("%s:%d: at %v: %s\n got: %s\nwant: %s", file, n+1, p.now, command, got, want)
		}
	}
}

func newScript(settings []string) *script {
	p := &script{open: map[string]TransID{}, closed: map[string]TransID{}, origins: map[string]uint32{}, cfg: Config{
		Count: 1, Len: 8, Concurrent: 1, Gap: time.Second, StatusTimeout: time.Minute, MaxAttempts: 3,
		Patience: time.Minute, RejectOver: 100, Remember: 100, MaxDelay: time.Minute,
	}}
	p.set(settings)
	p.s = New(p.cfg)
	return p
}

func (p *script) set(settings []string) {
	for _, word := range settings {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "count":
			p.cfg.Count = number(value)
		case "len":
			p.cfg.Len = number(value)
		case "concurrent":
			p.cfg.Concurrent = number(value)
		case "attempts":
			p.cfg.MaxAttempts = number(value)
		case "reject_over":
			p.cfg.RejectOver = number(value)
		case "remember":
			p.cfg.Remember = number(value)
		case "generation":
			p.cfg.Generation = uint32(number(value))
		case "factor":
			p.cfg.DelayFactor = float64(number(value))
		case "gap":
			p.cfg.Gap = span(value)
		case "site_gap":
			p.cfg.SiteGap = span(value)
		case "site_concurrent":
			p.cfg.SiteConcurrent = number(value)
		case "timeout":
			p.cfg.StatusTimeout = span(value)
		case "max_fetch":
			p.cfg.MaxFetch = span(value)
		case "patience":
			p.cfg.Patience = span(value)
		case "max_delay":
			p.cfg.MaxDelay = span(value)
		default:
			panic("no setting " + key)
		}
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func span(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

// arg returns argument i, or a default if there are fewer.
func arg(args []string, i int, usual string) string {
	if i < len(args) {
		return args[i]
	}
	return usual
}

func (p *script) origin(name string) uint32 {
	host, _, _ := strings.Cut(name, ":")
	p.origins[name] = p.s.EnsureOrigin([]byte("http://"+name), []byte(host))
	return p.origins[name]
}

func (p *script) host(name string) uint32 { return p.s.EnsureHost([]byte(name)) }

// do executes one command.
func (p *script) do(verb string, args []string) string {
	commands := map[string]func(args []string) string{
		"+":         p.pass,
		"at":        p.until,
		"bind":      p.bind,
		"leave":     p.leave,
		"move":      p.move,
		"movable":   p.movable,
		"stay":      p.stay,
		"settled":   p.settled,
		"offer":     p.offer,
		"send":      p.send,
		"next":      p.whoIsNext,
		"refuse":    p.refuse,
		"done":      p.done,
		"working":   p.working,
		"expire":    p.expire,
		"lost":      p.lost,
		"lookup":    p.lookup,
		"delay":     p.delay,
		"block":     p.block,
		"cap":       p.setCap,
		"hold":      p.hold,
		"go":        p.release,
		"ask":       p.ask,
		"unask":     p.unask,
		"nextask":   p.nextAsk,
		"asked":     p.asked,
		"asking":    p.asking,
		"retract":   p.retract,
		"fail":      p.fail,
		"delayed":   p.delayed,
		"touch":     p.touch,
		"tick":      p.tick,
		"sweep":     p.sweep,
		"counts":    p.counts,
		"rejects":   p.rejects,
		"slot":      p.slot,
		"glance":    p.glance,
		"heldby":    p.heldBy,
		"levels":    p.levels,
		"blocked":   p.blocked,
		"configure": p.configure,
	}
	return commands[verb](args)
}

func (p *script) pass(args []string) string {
	p.now += span(args[0])
	return ""
}

func (p *script) until(args []string) string {
	p.now = span(args[0])
	return ""
}

// bind HOST IP [GROUP|- [NETWORK]]
func (p *script) bind(args []string) string {
	p.s.Host(p.host(args[0])).Bind(p.now, Place{
		Addr: netip.MustParseAddr(args[1]), Group: strings.Trim(arg(args, 2, ""), "-"), Network: arg(args, 3, ""),
	})
	return ""
}

func (p *script) leave(args []string) string {
	p.s.Host(p.host(args[0])).Unbind(p.now)
	return ""
}

// move HOST IP [GAP [GROUP|- [NETWORK]]]: moves a host, with a gap of its own
func (p *script) move(args []string) string {
	id, addr := p.host(args[0]), netip.MustParseAddr(args[1])
	to := Place{Addr: addr, Site: Limits{Gap: span(arg(args, 2, "0"))}, Group: strings.Trim(arg(args, 3, ""), "-"),
		Network: arg(args, 4, "")}
	if !p.s.Host(id).Move(p.now, to, false) {
		return "later"
	}
	if p.s.Host(id).Resolving() {
		p.s.Host(id).Bind(p.now, to)
	}
	return ""
}

func (p *script) movable([]string) string {
	id := p.s.Movable(p.now)
	if id == 0 {
		return "nobody"
	}
	return string(p.s.Host(id).Name())
}

func (p *script) stay(args []string) string {
	p.s.Host(p.host(args[0])).CancelMove(p.now)
	return ""
}

func (p *script) settled(args []string) string {
	h := p.host(args[0])
	return fmt.Sprintf("%v resolving=%v", p.s.Host(h).Settled(), p.s.Host(h).Resolving())
}

// offer HOST ID [PRIORITY]
func (p *script) offer(args []string) string {
	priority := number(arg(args, 2, "0"))
	url := "http://" + args[0] + "/" + args[1]
	c := Candidate{Origin: p.origin(args[0]), ID: []byte(args[1]), URL: []byte(url), Priority: int32(priority)}
	if !p.s.Offer(p.now, c) {
		return "held"
	}
	return ""
}

func (p *script) next() (t Selection, none string) {
	t, wait, ok := p.s.Next(p.now)
	if ok {
		return t, ""
	}
	return t, waits(wait)
}

func waits(wait time.Duration) string {
	if wait == 0 {
		return "nothing"
	}
	return fmt.Sprintf("wait %v", wait)
}

// send [SPIDER]: sends the next document; returns it with its address and TRANS_ID
func (p *script) send(args []string) string {
	t, none := p.next()
	if none != "" {
		return none
	}
	trans := p.s.Send(p.now, t, uint32(number(arg(args, 0, "1"))))
	id := string(p.s.Doc(t.Doc).ID)
	p.open[id] = trans
	return fmt.Sprintf("%s %v %d.%d.%d", id, p.s.Host(t.Host).Addr(), trans.Slot, trans.Active, trans.Generation)
}

// whoIsNext returns the next document and the spider of its slot.
func (p *script) whoIsNext([]string) string {
	t, none := p.next()
	if none != "" {
		return none
	}
	return fmt.Sprintf("%s spider=%d due=%v", p.s.Doc(t.Doc).ID, t.Spider, t.Due)
}

func (p *script) refuse([]string) string {
	t, none := p.next()
	if none != "" {
		return none
	}
	id := string(p.s.Doc(t.Doc).ID)
	p.s.DequeueSelected(p.now, t)
	p.s.End(p.now, t.Doc)
	return id
}

// done ID [STATUS [RETRY_AFTER]]
func (p *script) done(args []string) string {
	trans := p.open[args[0]]
	p.end(args[0])
	doc := p.s.Done(p.now, trans, number(arg(args, 1, "0")), span(arg(args, 2, "0")))
	if got := string(p.s.Doc(doc).ID); got != args[0] {
		return "document " + got
	}
	p.s.End(p.now, doc)
	return ""
}

func (p *script) end(id string) {
	p.closed[id] = p.open[id]
	delete(p.open, id)
}

func (p *script) working(args []string) string {
	p.s.Working(p.now, p.open[args[0]])
	return ""
}

// back returns the names of documents that came back, those with too many attempts as "over".
func (p *script) back(take func() (doc uint32, over bool)) string {
	var ids []string
	for {
		doc, over := take()
		if doc == 0 {
			return strings.Join(ids, " ")
		}
		id := string(p.s.Doc(doc).ID)
		p.end(id)
		if over {
			p.s.End(p.now, doc)
			id += ":over"
		}
		ids = append(ids, id)
	}
}

// expire: takes back all documents of the spiders with an overdue transaction
func (p *script) expire([]string) string {
	var ids []string
	for spider, _ := p.s.Overdue(p.now); spider != 0; spider, _ = p.s.Overdue(p.now) {
		ids = append(ids, p.lose(spider, Whole, 0))
	}
	return strings.Join(ids, " ")
}

// lost SPIDER [none|shared|whole [POOL]]
func (p *script) lost(args []string) string {
	blame := map[string]Blame{"none": None, "shared": Shared, "whole": Whole}[arg(args, 1, "whole")]
	return p.lose(uint32(number(args[0])), blame, uint32(number(arg(args, 2, "0"))))
}

func (p *script) lose(spider uint32, blame Blame, pool uint32) string {
	return p.back(func() (uint32, bool) {
		doc, _ := p.s.Lost(p.now, spider)
		return doc, doc != 0 && p.s.Pool(pool).Requeue(p.now, doc, blame)
	})
}

// lookup SLOT.ACTIVE.GENERATION
func (p *script) lookup(args []string) string {
	var t TransID
	if _, err := fmt.Sscanf(args[0], "%d.%d.%d", &t.Slot, &t.Active, &t.Generation); err != nil {
		panic(err)
	}
	v, tx := p.s.Lookup(t)
	return []string{Unknown: "never", Stale: "stale", Live: fmt.Sprintf("live at %d", tx.Spider)}[v]
}

func (p *script) delay(args []string) string {
	p.s.Host(p.host(args[0])).SetCrawlDelay(p.now, span(args[1]))
	return ""
}

// cap NETWORK GAP CONCURRENT
func (p *script) setCap(args []string) string {
	p.s.SetCap(p.now, args[0], span(args[1]), number(args[2]))
	return ""
}

func (p *script) block(args []string) string {
	p.s.Host(p.host(args[0])).Block(p.now, span(args[1]))
	return ""
}

func (p *script) hold(args []string) string {
	p.s.Origin(p.origin(args[0])).SetRobotsPending(p.now, true)
	return ""
}

func (p *script) release(args []string) string {
	p.s.Origin(p.origin(args[0])).SetRobotsPending(p.now, false)
	return ""
}

// ask HOST NAME [again]
func (p *script) ask(args []string) string {
	p.s.Host(p.host(args[0])).QueueOwnRequest(p.now, uint32(number(args[1])), try(args[2:]))
	return ""
}

func try(args []string) OwnQueue {
	if len(args) > 0 && args[0] == "again" {
		return Retry
	}
	return FirstTry
}

// retract HOST NAME
func (p *script) retract(args []string) string {
	want := uint32(number(args[1]))
	return p.retracted(args[0], func(name uint32) bool { return name == want })
}

func (p *script) unask(args []string) string {
	return p.retracted(args[0], func(uint32) bool { return true })
}

func (p *script) retracted(host string, chosen func(name uint32) bool) string {
	return strings.Trim(fmt.Sprint(p.s.Host(p.host(host)).RetractOwnRequests(p.now, chosen)), "[]")
}

// nextask [again]
func (p *script) nextAsk(args []string) string {
	name, addr, wait, ok := p.s.NextOwnRequest(p.now, try(args))
	if !ok {
		return waits(wait)
	}
	return fmt.Sprintf("%d %v", name, addr)
}

// asking HOST
func (p *script) asking(args []string) string {
	p.s.Host(p.host(args[0])).OwnRequestSent(p.now)
	return ""
}

// asked HOST STATUS [RETRY_AFTER [TOOK]]
func (p *script) asked(args []string) string {
	p.s.Host(p.host(args[0])).OwnRequestDone(p.now, Feedback{
		Status: number(args[1]), RetryAfter: span(arg(args, 2, "0")), Took: span(arg(args, 3, "0")),
	})

	return ""
}

func (p *script) fail(args []string) string {
	p.s.Host(p.host(args[0])).Fail()
	return p.back(func() (uint32, bool) {
		doc, _ := p.s.NextFailed()
		return doc, true
	})
}

// delayed SPIDER SINCE
func (p *script) delayed(args []string) string {
	p.s.LinesWritten(p.now, uint32(number(args[0])), span(args[1]))
	return ""
}

func (p *script) touch(args []string) string {
	p.s.MarkRequested(p.now, p.open[args[0]])
	return ""
}

func (p *script) tick([]string) string { return waits(p.s.Tick(p.now)) }

// sweep returns the names of the origins that were forgotten.
func (p *script) sweep([]string) string {
	p.s.sweep(p.now)
	var names []string
	gone := p.s.Forgotten(nil)
	for _, name := range slices.Sorted(maps.Keys(p.origins)) {
		if slices.Contains(gone, p.origins[name]) {
			names = append(names, name)
			delete(p.origins, name)
		}
	}
	return strings.Join(names, " ")
}

func (p *script) counts([]string) string {
	c := p.s.Counts()
	return fmt.Sprintf("used=%d full=%d cooling=%d waiting=%d held=%d leftover=%d in_flight=%d",
		c.Used, c.Full, c.Cooling, c.Waiting, c.Held, c.Leftover, c.InFlight)
}

func (p *script) rejects([]string) string {
	var names []string
	p.s.Rejects(func(name []byte) { names = append(names, string(name)) })
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (p *script) slot(args []string) string {
	v, ok := p.s.Slot(p.now, uint32(number(args[0])), 10)
	if !ok {
		return "empty"
	}
	return fmt.Sprintf("%v queued=%d active=%d next=%v gap=%v", v.Addr, v.Queued, v.Active, v.Next, v.Gap)
}

// heldby HOST SLOT: the level that holds back the host, and the slot's group, with its next moment
func (p *script) heldBy(args []string) string {
	host := p.s.Host(p.host(args[0])).View()
	slot, _ := p.s.Slot(p.now, uint32(number(args[1])), 1)
	return fmt.Sprintf("host=%v slot=%v next=%v", host.HeldBy(p.now), slot.HeldBy, slot.Next)
}

// levels: the counts of each level that are not all 0
func (p *script) levels([]string) string {
	var parts []string
	for level, c := range p.s.Counts().Levels {
		if c != (LevelCounts{}) {
			parts = append(parts, fmt.Sprintf(
				"%v: waiting=%d backing_off=%d backoffs=%d retry_after=%d put_off=%d",
				Level(level), c.Waiting, c.BackingOff, c.Backoffs, c.RetryAfters, c.PutOff))
		}
	}
	return strings.Join(parts, "; ")
}

func (p *script) configure(args []string) string {
	p.set(args)
	p.s.Reconfigure(p.now, p.cfg)
	return ""
}

// glance: each slot with its state, documents at spiders and held, and gap
func (p *script) glance([]string) string {
	var all []string
	dst := make([]SlotSummary, p.cfg.Count+3)
	for _, g := range dst[:p.s.Summaries(p.now, 0, dst)] {
		word := [States]string{"empty", "ready", "active", "cooling", "held"}[g.State]
		if g.State != Empty {
			word += fmt.Sprintf(" %d/%d gap=%v", g.Sent, g.Docs, g.Gap)
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

// blocked [MOST]: the blocked hosts by name, and how many there are
func (p *script) blocked(args []string) string {
	hosts, all := p.s.Blocked(number(arg(args, 0, "10")))
	words := []string{}
	for _, h := range hosts {
		words = append(words, fmt.Sprintf("%s:%v", h.Host, h.Until))
	}
	slices.Sort(words)
	return strings.Join(append(words, "of "+strconv.Itoa(all)), " ")
}
