package demo

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// step is one request at an address.
type step struct {
	at     time.Duration // arrival
	late   time.Duration // time from the daemon to the address
	delay  time.Duration // Crawl-delay of its host
	open   bool          // still open when the next one comes
	status int           // 0: 200
	retry  time.Duration
}

func TestPace(t *testing.T) {
	tests := []struct {
		name   string
		steps  []step
		broken int
		late   int
		over   int
		tight  pair
	}{
		{name: "one request has no gap", steps: []step{{at: 0}}},
		{name: "kept", steps: []step{{at: 0}, {at: 100 * ms}, {at: 210 * ms}},
			tight: pair{100 * ms, 100 * ms, 100 * ms}},
		{name: "within tolerance", steps: []step{{at: 0}, {at: 98 * ms}},
			tight: pair{98 * ms, 98 * ms, 100 * ms}},
		{name: "too early", steps: []step{{at: 0}, {at: 97 * ms}}, broken: 1,
			tight: pair{97 * ms, 97 * ms, 100 * ms}},
		{name: "each too early", steps: []step{{at: 0}, {at: 50 * ms}, {at: 90 * ms}}, broken: 2,
			tight: pair{40 * ms, 40 * ms, 100 * ms}},
		{name: "the one before was late", steps: []step{{at: 0, late: 40 * ms}, {at: 60 * ms}}, late: 1,
			tight: pair{60 * ms, 100 * ms, 100 * ms}},
		{name: "late, and too early all the same", steps: []step{{at: 0, late: 30 * ms}, {at: 60 * ms}},
			broken: 1, tight: pair{60 * ms, 90 * ms, 100 * ms}},
		{name: "being late itself is no excuse", steps: []step{{at: 0}, {at: 60 * ms, late: 50 * ms}},
			broken: 1, tight: pair{60 * ms, 60 * ms, 100 * ms}},
		{name: "Crawl-delay from its host's first page on",
			steps:  []step{{at: 0}, {at: 100 * ms}, {at: 250 * ms, delay: 200 * ms}, {at: 350 * ms}},
			broken: 2,
			tight:  pair{100 * ms, 100 * ms, 200 * ms}},
		{name: "the longest Crawl-delay holds", steps: []step{{at: 0, delay: 200 * ms},
			{at: 300 * ms, delay: 300 * ms}, {at: 500 * ms, delay: 200 * ms}}, broken: 1,
			tight: pair{200 * ms, 200 * ms, 300 * ms}},
		{name: "the gap doubles after 503", steps: []step{{at: 0, status: 503}, {at: 190 * ms}}, broken: 1,
			tight: pair{190 * ms, 190 * ms, 200 * ms}},
		{name: "and again", steps: []step{{at: 0, status: 503}, {at: 200 * ms, status: 429},
			{at: 600 * ms}}, tight: pair{200 * ms, 200 * ms, 200 * ms}},
		{name: "Retry-After", steps: []step{{at: 0, status: 429, retry: time.Second}, {at: 900 * ms}},
			broken: 1, tight: pair{900 * ms, 900 * ms, time.Second}},
		{name: "successes halve it back", steps: []step{{at: 0, status: 503, retry: 400 * ms},
			{at: 400 * ms}, {at: 600 * ms}, {at: 700 * ms}},
			tight: pair{400 * ms, 400 * ms, 400 * ms}},
		{name: "two at once", steps: []step{{at: 0, open: true}, {at: 100 * ms}}, over: 1,
			tight: pair{100 * ms, 100 * ms, 100 * ms}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := pace{gap: 100 * ms}
			faults := play(&p, test.steps)
			if p.broken != test.broken || p.late != test.late || p.over != test.over ||
				p.tight != test.tight {
				t.Errorf("broken %d, late %d, over %d, tight %v; want %d, %d, %d, %v",
					p.broken, p.late, p.over, p.tight, test.broken, test.late, test.over, test.tight)
			}
			if want := test.broken + test.over; len(faults) != want {
				t.Errorf("faults = %q, want %d", faults, want)
			}
		})
	}
}

// play lets requests arrive and end, and returns the faults.
func play(p *pace, steps []step) (faults []string) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range steps {
		at := start.Add(s.at)
		if fault := p.arrive(arrival{at: at, left: at.Add(-s.late), delay: s.delay,
			page: true}); fault != "" {
			faults = append(faults, fault)
		}
		if s.open {
			continue
		}
		if s.status == 0 {
			s.status = http.StatusOK
		}
		p.end(s.status, s.retry)
	}
	return faults
}

func TestPaceSaysWhatIsWrong(t *testing.T) {
	p := pace{gap: 100 * ms}
	faults := play(&p, []step{{at: 0}, {at: 20 * ms, open: true}, {at: 220 * ms}})
	if len(faults) != 2 || !strings.Contains(faults[0], "20ms") || !strings.Contains(faults[0], "100ms") ||
		!strings.Contains(faults[1], "2 requests") {
		t.Errorf("faults = %q", faults)
	}
	if p.most != 2 || p.pages != 3 {
		t.Errorf("most open %d, pages %d; want 2, 3", p.most, p.pages)
	}
}

func TestBackoffIsBounded(t *testing.T) {
	p := pace{gap: 100 * ms}
	for range 20 {
		p.end(http.StatusServiceUnavailable, 0)
	}
	if want := maxBackoff * 100 * ms; p.allowed() != want {
		t.Errorf("allowed after 20 times 503 = %v, want %v", p.allowed(), want)
	}
	for range 6 {
		p.end(http.StatusOK, 0)
	}
	if p.allowed() != 100*ms {
		t.Errorf("allowed after six successes = %v, want 100ms", p.allowed())
	}
}
