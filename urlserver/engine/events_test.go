package engine

import (
	"net/netip"
	"strings"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// event tells the engine something. The words:
//
//	spider NAME [SPIDERID] a spider connects, for a spiderid's documents or for any; then "NAME gone",
//	                       "NAME stranger" (is no spider), "NAME stuck" (reads nothing), "NAME takes"
//	                       (its lines leave the engine), "NAME took" (and are written), "NAME reads"
//	                       (again), and "NAME: LINE" for what it says
//	enlist NAME SPIDERID   a spider says so later
//	index ...              the answer of the doc index, see script.index
//	dns HOST IP|fail       what the resolver has in its memory from now on; "forget": nothing
//	resolved HOST IP|fail|servfail|down
//	                       the answer to a look-up; the last two are not remembered
//	robots URL ...         the answer to a fetch, see script.robots
//	pause, resume, choke, unchoke, stop, poke
//	block HOST SPAN        for so long; 0s: not
//	configure KEY=VALUE ...
//	wall SPAN              the wall clock is set, ahead or back
//	why HOST               what Explain says
//	counts                 some figures
//	condemn DOC_ID ...     their crawl was stopped
//	forget DOC_ID ...      their crawl was deleted
func (p *script) event(words []string) {
	p.e.Advance(p.now, start.Add(p.now+p.wall))
	verb, args := words[0], words[1:]
	if name, ok := strings.CutSuffix(verb, ":"); ok {
		p.line(name, strings.Join(args, " "))
		return
	}
	if _, ok := p.spiders[verb]; ok {
		p.spider(verb, args[0])
		return
	}
	if !p.operate(verb, args) {
		p.outside(verb, args)
	}
}

func (p *script) outside(verb string, args []string) {
	switch verb {
	case "spider":
		id := p.e.Connected(args[0])
		p.spiders[args[0]], p.names[id] = id, args[0]
		if len(args) > 1 {
			p.e.JoinPool(id, args[1])
		}
	case "enlist":
		p.e.JoinPool(p.spiders[args[0]], args[1])
	case "index":
		p.index(args)
	case "own": // an address becomes this machine's
		p.own = netip.MustParseAddr(args[0])
	case "dns":
		if delete(p.dns, args[0]); args[1] != "forget" {
			p.dns[args[0]] = lookedUp(args[1])
		}
	case "resolved":
		a := lookedUp(args[1])
		if p.dns[args[0]] = a; a.err == errServfail || a.err == errDown {
			delete(p.dns, args[0])
		}
		p.e.Resolved(args[0], a.addr, a.err)
	case "leaves": // URL: the oldest open fetch of it
		p.e.FetchSent(p.fetches[args[0]][0])
	case "robots":
		p.robots(args[0], args[1:])
	default:
		panic("no event " + verb)
	}
}

func (p *script) spider(name, verb string) {
	switch verb {
	case "stranger":
		p.e.NotSpider(p.spiders[name])
	case "gone":
		p.e.Gone(p.spiders[name])
		delete(p.spiders, name)
		delete(p.stuck, name)
		delete(p.flying, name)
	case "stuck":
		p.stuck[name] = true
	case "takes":
		p.flying[name] = p.take(name)
	case "took":
		p.written(name)
	case "reads":
		p.stuck[name] = false
		p.read(name)
	default:
		panic("no event of a spider: " + verb)
	}
}

// operate does what an operator can; it answers false where that is not meant.
func (p *script) operate(verb string, args []string) bool {
	switch verb {
	case "pause", "resume":
		p.e.Pause(verb == "pause")
	case "choke", "unchoke":
		p.e.SetBackpressure(verb == "choke")
	case "stop":
		p.e.Stop()
	case "poke":
		p.e.WakeIndex()
	case "block":
		p.e.Block([]byte(args[0]), span(args[1]))
	case "wall":
		p.wall += span(args[0])
	case "why":
		p.why(args[0])
	case "counts":
		p.counts()
	case "condemn":
		p.e.Cancel(condemned(args), func(ended int) { p.say("condemned %d", ended) })
	case "forget":
		p.e.Forget(condemned(args))
	default:
		return p.configure(verb, args)
	}
	return true
}

func (p *script) configure(verb string, args []string) bool {
	if verb != "configure" {
		return false
	}
	for _, word := range args {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "max_in_flight":
			p.cfg.Spider.MaxInFlight = number(value)
		case "gap":
			p.cfg.ReqHostPerSec = float64(time.Second) / float64(span(value))
		case "rules":
			p.cfg.Rules = rulesOf(value)
		case "sample":
			p.cfg.Trace.Sample = float64(number(value))
		case "robots":
			p.cfg.Robots.Enabled = value == "on"
		default:
			panic("no setting " + key)
		}
	}
	p.e.Reconfigure(p.cfg)
	return true
}

// rulesOf reads rules as an inline list without spaces.
func rulesOf(text string) []configs.HostRule {
	cfg, err := configs.Parse("script", []byte("rules = "+text))
	if err != nil {
		panic(err)
	}
	return cfg.Rules
}

func (p *script) why(host string) {
	x, ok := p.e.Explain([]byte(host))
	if !ok {
		p.say("%s is not known", host)
		return
	}
	p.say("%s", x.Why)
}

func (p *script) counts() {
	s := p.e.Stats()
	p.say("sent=%d retried=%d expired=%d lost=%d stale=%d bad=%d", s.Sent, s.Retried, s.Expired, s.Lost,
		s.Stale, s.BadLines)
	p.say("asked=%d candidates=%d duplicates=%d bad=%d rejected=%d", s.IndexRequests, s.Candidates,
		s.Duplicates, s.BadCandidates, s.Rejected)
	c := s.Slots
	p.say("held=%d leftover=%d unresolved=%d in_flight=%d trips=%d", c.Held, c.Leftover, c.Unresolved,
		c.InFlight, s.RobotsFetches)
}

func condemned(ids []string) *docindex.Outcomes {
	o := new(docindex.Outcomes)
	for _, id := range ids {
		o.Add(docindex.Outcome{DocID: []byte(id), Kind: docindex.Stopped})
	}
	return o
}
