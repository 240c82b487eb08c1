package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/urlserver"
)

// Targets of the index on disk with many hosts.
const (
	scaleMemory   = disk.DefaultMemory
	scaleBeside   = 64 << 20 // bytes that the process may take beside the memory of the index
	scaleFirst    = time.Second
	scaleKilled   = 3 * time.Second
	scaleDisk     = 100 // bytes a URL
	scalePuts     = 0.8 // rate at the end, of that at the start
	scaleGets     = 0.7 // rate, of that with few hosts
	scaleURLLen   = 70
	scalePart     = 10 // the first and the last tenth of the URLs are timed
	scaleFewHosts = 10_000
)

// scaled is an index on disk in a process of its own.
type scaled struct {
	Path   string
	Memory int64

	store *disk.Store
}

// scaleWork is a request to a scaled: URLs from one number on, on so many hosts.
type scaleWork struct{ From, URLs, Hosts int }

func (x *scaled) open(ctx context.Context) (any, error) {
	urlserver.TuneGC(true)
	began := time.Now()
	s, err := disk.Open(disk.Config{Path: x.Path, Memory: x.Memory, Log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	x.store = s
	_, err = s.Count(ctx, nil)
	return time.Since(began), err
}

func (x *scaled) do(ctx context.Context, r request) (any, error) {
	var w scaleWork
	if len(r.Arg) > 0 {
		if err := json.Unmarshal([]byte(r.Arg), &w); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	switch r.Do {
	case "put":
		return time.Since(began), x.put(ctx, w)
	case "get":
		return time.Since(began), x.get(ctx, w.URLs)
	}
	return nil, unknown(r)
}

func (x *scaled) close() error {
	if x.store == nil {
		return nil
	}
	return x.store.Close()
}

// put puts URLs of scaleURLLen bytes.
func (x *scaled) put(ctx context.Context, w scaleWork) error {
	var p docindex.Puts
	for i := w.From; i < w.From+w.URLs; i++ {
		url := fmt.Appendf(nil, "http://www.host-%08d.example/", i%w.Hosts)
		url = fmt.Appendf(url, "a/path/that/is/long/%0*d", scaleURLLen-len(url)-len("a/path/that/is/long/"), i)
		if err := p.Add(docindex.Put{URL: url}); err != nil {
			return err
		}
		if p.Len() == 1000 || i == w.From+w.URLs-1 {
			if _, err := x.store.Put(ctx, &p); err != nil {
				return err
			}
			p.Reset()
		}
	}
	return nil
}

// get takes documents and ends them.
func (x *scaled) get(ctx context.Context, n int) error {
	for left := n; left > 0; {
		var b docindex.Batch
		if err := x.store.Candidates(ctx, min(left, 1000), nil, &b); err != nil {
			return err
		}
		if b.Len() == 0 {
			return fmt.Errorf("%d of %d documents came", n-left, n)
		}
		var o docindex.Outcomes
		for i := range b.Len() {
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200, Attempts: 1})
		}
		if err := x.store.Outcomes(ctx, &o); err != nil {
			return err
		}
		left -= b.Len()
	}
	return nil
}

// takeScale measures the index on disk with many hosts.
func takeScale(ctx context.Context, b *bench) (rows []row, err error) {
	_, few, err := b.scale(ctx, min(1_000_000, 10_000_000/b.part), scaleFewHosts, nil)
	if err != nil {
		return nil, err
	}
	for _, size := range []scaleWork{{URLs: 10_000_000, Hosts: 10_000_000}, {URLs: 100_000_000, Hosts: 3_000_000}} {
		some, _, err := b.scale(ctx, size.URLs/b.part, size.Hosts/b.part, few)
		rows = append(rows, some...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// scales are the measurements of one size.
type scales struct {
	first, last, get time.Duration // to put the first and the last part, to get and end a part
	part             int           // URLs in each
	usage            usage
	opened, killed   time.Duration // to the first answer, after a stop and a kill
	bytes            int64
}

// scale fills an index and measures it. few is the same with few hosts; nil: this is it.
func (b *bench) scale(ctx context.Context, urls, hosts int, few *scales) (rows []row, s *scales, err error) {
	path, err := os.MkdirTemp("", "scale")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(path)
	s = &scales{part: urls / scalePart}
	job := &scaled{Path: path, Memory: scaleMemory}
	var opened time.Duration
	c, err := b.start(ctx, "scaled", job, &opened)
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(
		c.work("put", scaleWork{0, s.part, hosts}, &s.first),
		c.work("put", scaleWork{s.part, urls - 2*s.part, hosts}, nil),
		c.work("put", scaleWork{urls - s.part, s.part, hosts}, &s.last),
		c.work("get", scaleWork{URLs: s.part}, &s.get),
		c.ask("usage", "", &s.usage))
	if err := errors.Join(err, c.stop()); err != nil {
		return nil, nil, err
	}
	if s.bytes, err = folderBytes(path); err != nil {
		return nil, nil, err
	}
	if c, err = b.start(ctx, "scaled", job, &s.opened); err != nil {
		return nil, nil, err
	}
	err = c.work("get", scaleWork{URLs: min(s.part, 100_000)}, nil)
	_ = c.cmd.Process.Kill()
	_ = c.stop() // it was killed
	if err != nil {
		return nil, nil, err
	}
	if c, err = b.start(ctx, "scaled", job, &s.killed); err != nil {
		return nil, nil, err
	}
	if err := c.stop(); err != nil || few == nil {
		return nil, s, err
	}
	return s.rows(urls, hosts, few), s, nil
}

func (c *child) work(do string, w scaleWork, took *time.Duration) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	began := time.Now()
	err = c.ask(do, string(text), nil)
	if took != nil {
		*took = time.Since(began)
	}
	return err
}

func (s *scales) rows(urls, hosts int, few *scales) []row {
	what := fmt.Sprintf("index on disk, %s URLs on %s hosts: ", millions(urls), millions(hosts))
	how := fmt.Sprintf("URLs of %d bytes, docindex.memory %d MiB, %d at a time", scaleURLLen, scaleMemory>>20, 1000)
	rate := func(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }
	puts, gets := rate(s.part, s.last), rate(s.part, s.get)
	first, fewGets := rate(s.part, s.first), rate(few.part, few.get)
	each := float64(s.bytes) / float64(urls)
	return []row{
		{what + "peak RSS", fmt.Sprintf("≤ %d MB", (scaleMemory+scaleBeside)>>20),
			fmt.Sprintf("%d MB", s.usage.PeakRSS>>20), judge(s.usage.PeakRSS <= scaleMemory+scaleBeside), "", how},
		{what + "put, last tenth", fmt.Sprintf("≥ %.1f of the first", scalePuts), fmt.Sprintf("%.0f/s", puts),
			judge(puts >= scalePuts*first), fmt.Sprintf("first tenth %.0f/s: %.2f", first, puts/first), how},
		{what + "get and end", fmt.Sprintf("≥ %.1f of few hosts", scaleGets), fmt.Sprintf("%.0f/s", gets),
			judge(gets >= scaleGets*fewGets),
			fmt.Sprintf("%d hosts %.0f/s: %.2f", scaleFewHosts, fewGets, gets/fewGets), how},
		{what + "disk", fmt.Sprintf("≤ %d B a URL", scaleDisk), fmt.Sprintf("%.0f B", each),
			judge(each <= scaleDisk), "", how},
		{what + "first answer", "≤ " + scaleFirst.String(), s.opened.Round(time.Millisecond).String(),
			judge(s.opened <= scaleFirst), "", "after a stop"},
		{what + "first answer after a kill", "≤ " + scaleKilled.String(), s.killed.Round(time.Millisecond).String(),
			judge(s.killed <= scaleKilled), "", "after kill -9 while documents were handed out and ended"},
	}
}

func millions(n int) string { return fmt.Sprintf("%g M", float64(n)/1e6) }

// folderBytes returns the bytes of the files in a folder.
func folderBytes(path string) (sum int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
