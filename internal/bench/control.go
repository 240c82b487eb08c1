package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
	"urlserver/docindex/redis"
)

// openStore opens the daemon's own index.
func (d *daemon) openStore(lost configs.Reservation, log zerolog.Logger) error {
	switch {
	case d.Shared != "":
		s := redis.New(redis.Config{Addrs: []string{d.Shared}, Lease: lost.Lease, Janitor: lost.Janitor})
		d.store, d.closeStore = s, s.Close
		return nil
	case d.Disk != "":
		s, err := disk.Open(disk.Config{Path: d.Disk, Log: log})
		if err != nil {
			return err
		}
		d.crawls, d.closeStore = s, s.Close
	default:
		d.crawls = memory.New()
	}
	d.store = d.crawls
	return nil
}

// fillCrawls puts documents of crawls c0, c1 and so on, in turn. The addresses of each crawl follow
// those that "fill" uses.
func (d *daemon) fillCrawls(ctx context.Context) error {
	var p docindex.Puts
	each := d.CrawlHosts / d.Crawls
	for i := range d.CrawlURLs {
		crawl := i % d.Crawls
		host := d.Hosts + crawl*each + i/d.Crawls%each
		put := docindex.Put{
			URL:      appendPath(append([]byte("http://"), addrOf(host).String()...), i),
			Crawl:    fmt.Appendf(nil, "c%d", crawl),
			Metadata: []byte(`{"appid":["bench"],"spiderid":["link"]}`), Priority: int32(1 + i%7),
		}
		if err := p.Add(put); err != nil {
			return err
		}
		if p.Len() == 10_000 || i == d.CrawlURLs-1 {
			if _, err := d.store.Put(ctx, &p); err != nil {
				return err
			}
			p.Reset()
		}
	}
	return nil
}

// control repeats a request of crawl control.
func (d *daemon) control(ctx context.Context, action, crawl string, times int) (a asked, err error) {
	fields := ""
	if crawl != "" {
		fields = fmt.Sprintf(`,"crawlid":%q`, crawl)
	}
	request := fmt.Appendf(nil, `{"action":%q,"appid":"bench","uuid":"u","spiderid":"link"%s}`,
		action, fields)
	m := crawlcontrol.New(d.controller, 1000)
	before, err := readUsage()
	if err != nil {
		return a, err
	}
	var took []time.Duration
	for range times {
		began := time.Now()
		replies, _, err := m.Do(ctx, [][]byte{request})
		if err != nil {
			return a, err
		}
		if replies[0].Refused {
			return a, fmt.Errorf("%s: %s", request, replies[0].Body)
		}
		took = append(took, time.Since(began))
	}
	after, err := readUsage()
	a.Spread, a.CPU = spreadOf(took), after.CPU-before.CPU
	counts, countErr := d.crawls.CrawlCounts(ctx, 0)
	for _, c := range counts {
		a.Purged += c.Purged
	}
	return a, errors.Join(err, countErr)
}
