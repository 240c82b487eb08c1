package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// index is the doc index of all daemons. Each host always has some documents to be fetched, until
// end is called. If a daemon dies, its documents are offered again. Safe for concurrent use.
type index struct {
	hosts []string
	keeps func(taker string, host int) bool // a host is not offered to this taker; nil: each is to all

	mu     sync.Mutex // guards all below
	rnd    *rand.Rand
	docs   map[string]*document // documents that have not ended, by ID
	free   []*document          // those of docs that no daemon has
	made   []int                // number of documents made for each host
	urls   []string             // URLs of all documents that have ended
	over   bool                 // no more documents are made
	takers map[string]bool      // living daemons, and whether they can work
	odd    map[string]int       // number of outcomes other than a fetched page
}

type document struct {
	id, url string
	host    int
	taker   string    // the daemon that has it; "": none
	after   time.Time // it is not offered before: a daemon drops what has ended a moment ago
}

// quarantine is longer than that of the daemons.
const quarantine = 2 * time.Second

const each = 2 // documents of each host that have not ended

func newIndex(hosts []string, rnd *rand.Rand) *index {
	x := &index{hosts: hosts, rnd: rnd, docs: map[string]*document{}, made: make([]int, len(hosts)),
		takers: map[string]bool{}, odd: map[string]int{}}
	for range each {
		for _, host := range rnd.Perm(len(hosts)) {
			x.addLocked(host)
		}
	}
	return x
}

func (x *index) addLocked(host int) {
	x.made[host]++
	id := fmt.Sprintf("%d.%d", host, x.made[host])
	d := &document{id: id, host: host, url: fmt.Sprintf("http://%s:%d/%s", x.hosts[host], webPort, id)}
	x.docs[id] = d
	x.free = append(x.free, d)
}

// set records whether a daemon lives, and whether it can work. The documents of a dead daemon are
// offered again.
func (x *index) set(taker string, lives, works bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.takers[taker] = works; lives {
		return
	}
	delete(x.takers, taker)
	for _, d := range x.docs {
		if d.taker == taker {
			d.taker = ""
			x.free = append(x.free, d)
		}
	}
}

// knows reports whether a daemon is known to live.
func (x *index) knows(taker string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, lives := x.takers[taker]
	return lives
}

// end stops making documents.
func (x *index) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
}

// left returns the number of documents that have not ended.
func (x *index) left() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.docs)
}

// servable returns the hosts with a document that no daemon has, or one that can work.
func (x *index) servable() map[int]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	hosts := map[int]bool{}
	for _, d := range x.docs {
		if d.taker == "" || x.takers[d.taker] {
			hosts[d.host] = true
		}
	}
	return hosts
}

// ServeHTTP answers POST /TAKER/candidates and /TAKER/outcomes.
func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	taker, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, lives := x.takers[taker]; !lives {
		http.Error(w, "this daemon is dead", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if what == "candidates" {
		x.offerLocked(w, taker, body)
		return
	}
	for line := range strings.Lines(string(body)) {
		x.endedLocked([]byte(line))
	}
}

func (x *index) offerLocked(w io.Writer, taker string, body []byte) {
	var ask struct {
		Max    int
		Reject []string
	}
	if json.Unmarshal(body, &ask) != nil {
		return
	}
	rejected := map[string]bool{}
	for _, host := range ask.Reject {
		rejected[host] = true
	}
	x.rnd.Shuffle(len(x.free), func(i, k int) { x.free[i], x.free[k] = x.free[k], x.free[i] })
	rest := x.free[:0]
	for _, d := range x.free {
		if ask.Max == 0 || rejected[x.hosts[d.host]] || d.after.After(time.Now()) ||
			x.keeps != nil && x.keeps(taker, d.host) {
			rest = append(rest, d)
			continue
		}
		ask.Max--
		d.taker = taker
		fmt.Fprintf(w, "{\"doc_id\":%q,\"url\":%q}\n", d.id, d.url)
	}
	x.free = rest
}

func (x *index) endedLocked(line []byte) {
	var o struct {
		DocID   string `json:"doc_id"`
		Outcome string
		Status  int
	}
	d := x.docs[""]
	if json.Unmarshal(line, &o) == nil {
		d = x.docs[o.DocID]
	}
	if d == nil { // the outcome came before
		return
	}
	if o.Outcome != "done" || o.Status != 200 { // the document still has to be fetched
		x.odd[fmt.Sprint(o.Outcome, " ", o.Status)]++
		if d.after = time.Now().Add(quarantine); d.taker != "" {
			d.taker = ""
			x.free = append(x.free, d)
		}
		return
	}
	if d.taker == "" {
		for i := range x.free {
			if x.free[i] == d {
				x.free[i] = x.free[len(x.free)-1]
				x.free = x.free[:len(x.free)-1]
				break
			}
		}
	}
	delete(x.docs, d.id)
	x.urls = append(x.urls, withoutPort(d.url))
	if !x.over {
		x.addLocked(d.host)
	}
}

// stuck finds hosts without progress.
type stuck struct {
	index  *index
	oracle *oracle
	places func(host int) []string // names under which the oracle knows the host
	tell   func(host string)       // called when a host has had no progress for tellAfter

	since   map[int]time.Duration // how long each host has had no progress, while it was possible
	longest map[int]time.Duration // the most of since that each host ever had
	looked  time.Time
}

// tellAfter is the time without progress after which all daemons are asked for the reason.
const tellAfter = 12 * time.Second

// mostTold is for how many hosts a look asks: each question is work for the reservation, which is slow when
// many hosts wait.
const mostTold = 5

// look adds the time since the last call to hosts that could have been served and were not. fine is
// false while nothing can be reserved.
func (s *stuck) look(fine bool) {
	now := time.Now()
	passed := min(now.Sub(s.looked), time.Second)
	servable, told := s.index.servable(), 0
	for host := range s.index.hosts {
		last := time.Time{}
		for _, name := range s.places(host) {
			if at := s.oracle.last(name); at.After(last) {
				last = at
			}
		}
		if !fine || !servable[host] || last.After(s.looked) {
			s.since[host] = 0
			continue
		}
		if before := s.since[host]; before <= tellAfter && before+passed > tellAfter && told < mostTold {
			told++
			s.tell(s.index.hosts[host])
		}
		s.since[host] += passed
		s.longest[host] = max(s.longest[host], s.since[host])
	}
	s.looked = now
}
