package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/configs"
	"urlserver/crawlcontrol"
	"urlserver/crawlcontrol/kafka"
)

const (
	crawlRequests = 200_000
	requestTopic  = "demo.incoming"
	requestTarget = 10_000 // requests per second
)

// broker is the role of a Kafka broker that holds requests to crawl.
type broker struct {
	Requests int

	cluster *kfake.Cluster
}

// open returns the broker's address.
func (b *broker) open(ctx context.Context) (ready any, err error) {
	if b.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, requestTopic)); err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for i := range b.Requests {
		text := fmt.Appendf(nil, `{"url":"http://%v/%d","appid":"bench","crawlid":"c%d","priority":%d}`,
			addrOf(i%crawlDomains), i, i%manyCrawls, 1+i%100)
		client.Produce(ctx, &kgo.Record{Topic: requestTopic, Value: text}, func(_ *kgo.Record, failed error) {
			err = errors.Join(err, failed)
		})
	}
	if flushed := client.Flush(ctx); flushed != nil {
		return nil, flushed
	}
	return b.cluster.ListenAddrs()[0], err
}

func (b *broker) close() error {
	if b.cluster != nil {
		b.cluster.Close()
	}
	return nil
}

// countdown handles requests until a number of them is done.
type countdown struct {
	*crawlcontrol.Handler
	left int
	over chan struct{}
}

// Do is called by one goroutine.
func (c *countdown) Do(ctx context.Context, messages [][]byte) (replies []crawlcontrol.Reply,
	done int, err error) {
	replies, done, err = c.Handler.Do(ctx, messages)
	if c.left -= done; c.left <= 0 && done > 0 && c.left+done > 0 {
		close(c.over)
	}
	return replies, done, err
}

// takeRequests handles CrawlURLs requests to crawl from a broker.
func (d *daemon) takeRequests(ctx context.Context, addr string) (a asked, err error) {
	cfg := configs.Default().Monitor
	cfg.Brokers, cfg.Inbound = []string{addr}, []string{requestTopic}
	c := &countdown{Handler: crawlcontrol.New(d.controller, cfg.MaxDomains), left: d.CrawlURLs,
		over: make(chan struct{})}
	s, err := kafka.New(kafka.Config{Settings: cfg, Handler: c,
		Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel)})
	if err != nil {
		return a, err
	}
	before, err := readUsage()
	if err != nil {
		return a, err
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-c.over:
	case <-ctx.Done():
	}
	took := time.Since(began)
	after, err := readUsage()
	cancel()
	a.Spread, a.CPU = spreadOf([]time.Duration{took}), after.CPU-before.CPU
	return a, errors.Join(err, <-ended)
}

// takeCrawlRequests measures a daemon with an index on disk that reads requests to crawl from a
// broker.
func takeCrawlRequests(ctx context.Context, b *bench) (rows []row, err error) {
	var addr string
	k, err := b.start(ctx, "broker", &broker{Requests: crawlRequests}, &addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.stop()) }()
	d, _, stop, err := startControlled(ctx, b, "disk", daemon{Slots: 4096, PerSec: 1, MaxInFlight: 100,
		Batch: 1000, CrawlURLs: crawlRequests})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var a asked
	if err := d.ask("requests", addr, &a); err != nil {
		return nil, err
	}
	rate := crawlRequests / a.Spread.Max.Seconds()
	return []row{{
		what: "crawl requests through Kafka, index: disk", target: fmt.Sprintf("%s/s", count(requestTarget)),
		measured: fmt.Sprintf("%s/s; %s for each second of CPU in the daemon", count(rate),
			count(crawlRequests/a.CPU.Seconds())),
		met: judge(rate >= requestTarget),
		how: fmt.Sprintf("%s requests for %s crawls and %s addresses in 4 partitions of a made broker, "+
			"a process of its own; each on disk before it is answered",
			count(crawlRequests), count(manyCrawls), count(crawlDomains)),
	}}, nil
}
