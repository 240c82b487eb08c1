package recrawl

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

// ends are outcomes by a word for each.
var ends = map[string]docindex.Outcome{
	"ok":        {Status: 200},
	"bare":      {NoStatus: true},
	"moved":     {Status: 301},
	"304":       {Status: 304},
	"changed":   {Status: 200, Change: docindex.Modified},
	"same":      {Status: 200, Change: docindex.Unchanged},
	"404":       {Status: 404},
	"410":       {Status: 410},
	"none":      {Status: 0},
	"100":       {Status: 100},
	"403":       {Status: 403},
	"429":       {Status: 429},
	"503":       {Status: 503},
	"999":       {Status: 999},
	"timeout":   {Kind: docindex.Timeout},
	"robots":    {Kind: docindex.Robots},
	"dns":       {Kind: docindex.DNS},
	"invalid":   {Kind: docindex.Invalid},
	"stopped":   {Kind: docindex.Stopped},
	"expired":   {Kind: docindex.Expired},
	"not known": {Kind: docindex.Kind(docindex.Kinds)},
}

// A story is ends one after the other, each with the wait that follows it; "0s" is never.
func TestNext(t *testing.T) {
	example := Rule{OK: 168 * hour, Error: hour}
	all := Rule{OK: 8 * hour, Gone: 30 * day, Error: hour}
	for _, c := range []struct {
		name  string
		rule  Rule
		story string
	}{
		{name: "off", story: "ok 0s, 404 0s, 503 0s, timeout 0s, changed 0s, same 0s"},
		{name: "all is well", rule: example, story: "ok 168h, bare 168h, moved 168h, ok 168h"},
		{name: "gone", rule: example, story: "404 0s, 410 0s"},
		{name: "gone for a while", rule: all, story: "404 720h, 410 720h, ok 8h"},
		{name: "what is final", rule: all, story: "invalid 0s, stopped 0s, expired 0s, not known 0s"},
		{name: "every error", rule: all,
			story: "none 1h, 100 2h, 403 4h, 429 8h, 503 16h, 999 32h, timeout 64h, robots 64h, dns 64h"},
		{name: "an end of errors", rule: all, story: "503 1h, 503 2h, ok 8h, 503 1h, 503 2h, 404 720h, 503 1h"},
		{name: "only errors come back", rule: Rule{Error: hour}, story: "503 1h, 503 2h, changed 0s"},
		{name: "errors of a year", rule: Rule{Error: longest}, story: "503 8760h, 503 8760h"},
		{name: "changes", rule: all, story: "changed 4h, changed 2h, changed 1h, changed 1h, same 1h30m, changed 1h"},
		{name: "no changes", rule: all,
			story: "same 12h, 304 18h, same 27h, same 40h30m, same 60h45m, 304 64h, same 64h, changed 32h"},
		{name: "nobody tells", rule: all, story: "same 12h, same 18h, ok 8h, bare 8h, same 12h"},
		{name: "errors do not touch the interval", rule: all,
			story: "same 12h, 503 1h, timeout 2h, same 18h, 404 720h, same 27h"},
		{name: "seconds are whole", rule: Rule{OK: 3 * time.Second},
			story: "same 5s, same 8s, changed 4s, changed 2s, changed 1s, changed 1s, same 2s"},
		{name: "no longer than a year", rule: Rule{OK: 300 * day}, story: "same 8760h, same 8760h, changed 4380h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s schedule
			for step := range strings.SplitSeq(c.story, ", ") {
				at := strings.LastIndexByte(step, ' ')
				o, known := ends[step[:at]]
				want, err := time.ParseDuration(step[at+1:])
				if !known || err != nil {
					t.Fatalf("no such step: %s", step)
				}
				var wait time.Duration
				if s, wait = c.rule.next(s, &o); wait != want {
					t.Errorf("in %q: %s is followed by %v", c.story, step, wait)
				}
			}
		})
	}
}

// Settings that changed meanwhile bind what was kept by the old ones.
func TestNextUnderANewRule(t *testing.T) {
	s := schedule{interval: 1000 * hour, errors: 900}
	for _, c := range []struct {
		end  string
		rule Rule
		want time.Duration
	}{
		{end: "same", rule: Rule{OK: hour}, want: 8 * hour},
		{end: "changed", rule: Rule{OK: 10000 * hour}, want: 1250 * hour},
		{end: "503", rule: Rule{Error: time.Minute}, want: 64 * time.Minute},
	} {
		o := ends[c.end]
		if _, wait := c.rule.next(s, &o); wait != c.want {
			t.Errorf("%s by %+v after %+v: %v; want %v", c.end, c.rule, s, wait, c.want)
		}
	}
}

// TestNextKeepsItsBounds has whatever rule, past and end.
func TestNextKeepsItsBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	span := func() time.Duration { // of any size
		return min(time.Second+time.Duration(rnd.Int64N(int64(longest))>>rnd.IntN(60)), longest)
	}
	var all []docindex.Outcome
	for _, o := range ends {
		all = append(all, o)
	}
	for round := range 300 {
		r := Rule{OK: span(), Gone: span(), Error: span()}
		s, row := schedule{interval: wholeSeconds(span()), errors: rnd.IntN(maxRow + 1)}, 0
		for range 200 {
			o := all[rnd.IntN(len(all))]
			next, wait := r.next(s, &o)
			least, most := time.Duration(0), time.Duration(0)
			switch classOf(&o) {
			case ok:
				least, most = min(r.OK/spread, longest), wholeSeconds(min(r.OK*spread, longest))
				row = 0
			case gone:
				least, most = r.Gone, r.Gone
				row = 0
			case failed:
				least, most = r.Error, min(maxGrow*r.Error, longest)
				row++
			}
			if wait < least || wait > most {
				t.Fatalf("round %d: %+v by %+v after %+v: wait %v; want %v to %v", round, o, r, s, wait, least, most)
			}
			if back, ok := read(next.with(&docindex.Document{})); !ok || back != next {
				t.Fatalf("round %d: %+v is kept as %+v, %v", round, next, back, ok)
			}
			if next.errors < row && next.errors < maxRow || row == 0 && classOf(&o) != final && next.errors != 0 {
				t.Fatalf("round %d: %d errors after %d in a row", round, next.errors, row)
			}
			s = next
		}
	}
}

func TestEnded(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, time.UTC)
	s, _ := Rule{OK: hour}.next(schedule{}, &docindex.Outcome{Status: 200, At: at})
	if want := at.UnixMilli(); s.ended != want {
		t.Errorf("it ended at %d; want %d", s.ended, want)
	}
	if s, _ = (Rule{OK: hour}).next(s, &docindex.Outcome{Status: 200}); s.ended != 0 {
		t.Errorf("an outcome without a time leaves %d", s.ended)
	}
}
