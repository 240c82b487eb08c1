package livefeed

import (
	"context"
	"math"
	"strconv"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

const (
	// Every is between two samples of the history.
	Every = 10 * time.Second

	samples = int(time.Hour/Every) + 1
)

// Sample covers the ten seconds up to At.
type Sample struct {
	At       int64                   `json:"at"`   // seconds since 1970
	Sent     Rounded                 `json:"sent"` // a second
	Outcomes [docindex.Kinds]Rounded `json:"outcomes"`
	// due to sent, seconds: median and 99th percentile; null: nothing was sent
	Delay [len(quantiles)]*Rounded `json:"delay"`
	// mean time of a request for candidates, seconds; null: there was none
	Index    *Rounded                  `json:"index"`
	DNS      *Rounded                  `json:"dns"`  // mean time of a look-up, seconds; null: there was none
	Held     int                       `json:"held"` // at its end
	Leftover int                       `json:"leftover"`
	InFlight int                       `json:"in_flight"`
	Statuses [docindex.Classes]Rounded `json:"statuses"` // documents a second, by docindex.Class
	// mean time from sending to DONE, seconds; null: nothing was fetched
	Fetch *Rounded `json:"fetch"`
}

var quantiles = [...]float64{0.5, 0.99}

// Rounded is a number that is written with three digits.
type Rounded float64

// MarshalJSON writes three digits.
func (f Rounded) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(f), 'g', 3, 64), nil
}

// history has the samples of the last hour.
type history struct {
	last    urlserver.Status
	at      time.Time // of last; zero: there is none
	samples []Sample
}

// History returns the samples of the last hour, the oldest first.
func (f *Feed) History(ctx context.Context) (all []Sample, err error) {
	err = f.do(ctx, func(context.Context) { all = append([]Sample{}, f.history.samples...) })
	return all, err
}

// sample adds a sample to the history and publishes it.
func (f *Feed) sample(ctx context.Context) {
	now, err := f.cfg.Source.Status(ctx)
	if err != nil {
		return // the daemon has stopped, and Run is about to end
	}
	if !f.history.add(now, time.Now()) || len(f.subscribers) == 0 {
		return
	}
	var m message
	m.add("sample", f.history.samples[len(f.history.samples)-1])
	f.send(m.text)
}

// add reports whether there is a new sample. The first status gives none.
func (h *history) add(now urlserver.Status, at time.Time) bool {
	last, began := h.last, h.at
	h.last, h.at = now, at
	if began.IsZero() || at.Sub(began) <= 0 {
		return false
	}
	if len(h.samples) == samples {
		h.samples = append(h.samples[:0], h.samples[1:]...)
	}
	h.samples = append(h.samples, newSample(&last, &now, at.Sub(began), at))
	return true
}

func newSample(last, now *urlserver.Status, took time.Duration, at time.Time) Sample {
	rate := func(from, to uint64) Rounded { return Rounded(float64(to-min(from, to)) / took.Seconds()) }
	s := Sample{
		At: at.Unix(), Sent: rate(last.Sent, now.Sent),
		Held: now.Slots.Held, Leftover: now.Slots.Leftover, InFlight: now.Slots.InFlight,
	}
	for kind := range s.Outcomes {
		s.Outcomes[kind] = rate(last.Outcomes[kind], now.Outcomes[kind])
	}
	for class := range s.Statuses {
		s.Statuses[class] = rate(last.Classes[class], now.Classes[class])
	}
	s.Fetch = mean(now.FetchTook-last.FetchTook, now.Outcomes[docindex.Done]-last.Outcomes[docindex.Done])
	delay := since(now.Delay, last.Delay)
	for i, q := range quantiles {
		s.Delay[i] = quantile(delay, q)
	}
	index := since(now.CandidateCalls.Seconds, last.CandidateCalls.Seconds)
	s.Index = mean(index.Sum, count(index))
	s.DNS = mean(now.DNS.Took-last.DNS.Took, now.DNS.Asked-last.DNS.Asked)
	return s
}

func mean(sum time.Duration, n uint64) *Rounded {
	if n == 0 {
		return nil
	}
	f := Rounded(sum.Seconds() / float64(n))
	return &f
}

// since returns what was added to a histogram after last.
func since(now, last engine.Histogram) engine.Histogram {
	for i := range now.Buckets {
		now.Buckets[i] -= last.Buckets[i]
	}
	now.Sum -= last.Sum
	return now
}

func count(h engine.Histogram) (n uint64) {
	for _, b := range h.Buckets {
		n += b
	}
	return n
}

// quantile interpolates within a bucket, in seconds; nil: the histogram is empty.
func quantile(h engine.Histogram, q float64) *Rounded {
	all := count(h)
	if all == 0 {
		return nil
	}
	rank, below, from := q*float64(all), 0.0, 0.0
	for i, n := range h.Buckets {
		to := engine.Bounds[min(i, len(engine.Bounds)-1)].Seconds()
		if in := float64(n); n > 0 && below+in >= rank {
			f := Rounded(from + (to-from)*(rank-below)/in)
			return &f
		}
		below, from = below+float64(n), to
	}
	f := Rounded(from)
	return &f
}
