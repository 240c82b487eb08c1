package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/crawlcontrol"
	"urlserver/crawlcontrol/kafka"
	"urlserver/docindex"
	"urlserver/urlserver"
	"urlserver/urlserver/httpapi"
)

// crawlControl is crawl control, where the store keeps crawls. Use open.
type crawlControl struct {
	monitor *crawlcontrol.Handler // nil: it does not
	store   crawlcontrol.Store
	keeper  *crawlcontrol.Controller
	kafka   *kafka.Service // nil: monitor.brokers is empty
	grace   time.Duration
	log     zerolog.Logger
	notices notices
}

// notices wait for Kafka, which may be away, without keeping crawls from ending.
type notices struct {
	more chan struct{} // holds one when there may be something to send

	mu      sync.Mutex // guards waiting; held for memory work only
	waiting []notice
}

type notice struct {
	crawlcontrol.Reply
	told func()
}

func (n *notices) add(one notice) {
	n.mu.Lock()
	n.waiting = append(n.waiting, one) // one or two for each crawl that ends
	n.mu.Unlock()
	select {
	case n.more <- struct{}{}:
	default:
	}
}

func (n *notices) take() []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.waiting
	n.waiting = nil
	return all
}

func (c *crawlControl) open(cfg configs.Monitor, store crawlcontrol.Store, daemon *urlserver.Daemon, log zerolog.Logger) (err error) {
	c.grace, c.log, c.notices.more = cfg.CompletedAfter, log, make(chan struct{}, 1)
	if store == nil {
		if len(cfg.Brokers) > 0 {
			return errors.New("monitor.brokers: crawl control needs an embedded doc index that keeps crawls; docindex.kind says otherwise")
		}
		return nil
	}
	c.store, c.keeper = store, crawlcontrol.NewController(store, daemon, log)
	c.monitor = crawlcontrol.New(c.keeper, cfg.MaxDomains)
	if len(cfg.Brokers) > 0 {
		c.kafka, err = kafka.New(kafka.Config{Settings: cfg, Handler: c.monitor, Log: log})
	}
	return err
}

func (c *crawlControl) actions() httpapi.Actions {
	if c.monitor == nil {
		return nil
	}
	return c.monitor
}

// figures tells how crawl control fares with Kafka; nil: it goes without.
func (c *crawlControl) figures() func() crawlcontrol.KafkaCounts {
	if c.kafka == nil {
		return nil
	}
	return c.kafka.Counts
}

// changes returns [crawlcontrol.Controller.Changes]; nil: the store keeps no crawls.
func (c *crawlControl) changes() func() uint64 {
	if c.keeper == nil {
		return nil
	}
	return c.keeper.Changes
}

func (c *crawlControl) lister() docindex.CrawlLister {
	if c.store == nil {
		return nil
	}
	return c.store
}

func (c *crawlControl) collectors() (all []prometheus.Collector) {
	if c.monitor != nil {
		all = append(all, crawlcontrol.Metrics{Handler: c.monitor, Store: c.store})
	}
	if c.kafka != nil {
		all = append(all, c.kafka)
	}
	return all
}

// run works until ctx ends.
func (c *crawlControl) run(ctx context.Context) (err error) {
	if c.monitor == nil {
		return nil
	}
	var helpers sync.WaitGroup
	if c.kafka != nil {
		helpers.Go(func() { err = c.kafka.Run(ctx) })
		helpers.Go(func() { c.sendNotices(ctx) })
	}
	c.keeper.Run(ctx, c.grace, c.notify)
	helpers.Wait()
	return err
}

// notify tells of what has happened to a crawl by itself. It does not wait. Without Kafka, the log is where it is told.
func (c *crawlControl) notify(one crawlcontrol.Reply, told func()) {
	c.log.Info().RawJSON("notice", one.Body).Msg("crawl control")
	if c.kafka == nil {
		told()
		return
	}
	c.notices.add(notice{one, told})
}

// sendNotices sends notices to Kafka, in their order, until ctx ends. What Kafka has not acknowledged by then, a store that
// is durable owes again.
func (c *crawlControl) sendNotices(ctx context.Context) {
	for {
		select {
		case <-c.notices.more:
			c.sendAll(ctx, c.notices.take())
		case <-ctx.Done():
			return
		}
	}
}

func (c *crawlControl) sendAll(ctx context.Context, all []notice) {
	var replies []crawlcontrol.Reply
	for _, one := range all {
		replies = append(replies, one.Reply)
	}
	if !c.kafka.Notify(ctx, replies...) {
		return
	}
	for _, one := range all {
		one.told()
	}
}
