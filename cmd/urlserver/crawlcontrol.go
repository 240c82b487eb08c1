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

// crawlControl is crawl control, if the store keeps crawls. Use open.
type crawlControl struct {
	handler    *crawlcontrol.Handler // nil: the store keeps no crawls
	store      crawlcontrol.Store
	controller *crawlcontrol.Controller
	kafka      *kafka.Service // nil: monitor.brokers is empty
	grace      time.Duration
	log        zerolog.Logger
	notices    notices
}

// notices are the notices that wait for Kafka. Crawls end also while Kafka does not answer.
type notices struct {
	more chan struct{} // holds one value while there may be notices to send

	mu      sync.Mutex // guards waiting; held for memory work only
	waiting []notice
}

type notice struct {
	crawlcontrol.Reply
	told func()
}

func (n *notices) add(one notice) {
	n.mu.Lock()
	n.waiting = append(n.waiting, one) // one or two notices for each crawl that ends
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

func (c *crawlControl) open(cfg configs.CrawlControl, store crawlcontrol.Store, daemon *urlserver.Daemon,
	log zerolog.Logger) (err error) {
	c.grace, c.log, c.notices.more = cfg.CompletedAfter, log, make(chan struct{}, 1)
	if store == nil {
		if len(cfg.Brokers) > 0 {
			return errors.New("monitor.brokers: crawl control needs an embedded doc index that keeps " +
				"crawls; docindex.kind says otherwise")
		}
		return nil
	}
	c.store, c.controller = store, crawlcontrol.NewController(store, daemon, log)
	c.handler = crawlcontrol.New(c.controller, cfg.MaxDomains)
	if len(cfg.Brokers) > 0 {
		c.kafka, err = kafka.New(kafka.Config{Settings: cfg, Handler: c.handler, Log: log})
	}
	return err
}

func (c *crawlControl) actions() httpapi.Actions {
	if c.handler == nil {
		return nil
	}
	return c.handler
}

// figures returns a function that counts messages over Kafka; nil: there is no Kafka.
func (c *crawlControl) figures() func() crawlcontrol.KafkaCounts {
	if c.kafka == nil {
		return nil
	}
	return c.kafka.Counts
}

// changes returns [crawlcontrol.Controller.Changes]; nil: the store keeps no crawls.
func (c *crawlControl) changes() func() uint64 {
	if c.controller == nil {
		return nil
	}
	return c.controller.Changes
}

// stopID returns [crawlcontrol.Controller.StopID]; nil: the store keeps no crawls.
func (c *crawlControl) stopID() func(ctx context.Context, crawl string) error {
	if c.controller == nil {
		return nil
	}
	return c.controller.StopID
}

func (c *crawlControl) lister() docindex.CrawlLister {
	if c.store == nil {
		return nil
	}
	return c.store
}

func (c *crawlControl) collectors() (all []prometheus.Collector) {
	if c.handler != nil {
		all = append(all, crawlcontrol.Metrics{Handler: c.handler, Store: c.store})
	}
	if c.kafka != nil {
		all = append(all, c.kafka)
	}
	return all
}

// run works until ctx ends.
func (c *crawlControl) run(ctx context.Context) (err error) {
	if c.handler == nil {
		return nil
	}
	var helpers sync.WaitGroup
	if c.kafka != nil {
		helpers.Go(func() { err = c.kafka.Run(ctx) })
		helpers.Go(func() { c.sendNotices(ctx) })
	}
	c.controller.Run(ctx, c.grace, c.notify)
	helpers.Wait()
	return err
}

// notify logs a notice, and queues it for Kafka. It does not wait. Without Kafka the log is the
// delivery.
func (c *crawlControl) notify(one crawlcontrol.Reply, told func()) {
	c.log.Info().RawJSON("notice", one.Body).Msg("crawl control")
	if c.kafka == nil {
		told()
		return
	}
	c.notices.add(notice{one, told})
}

// sendNotices sends notices to Kafka, in order, until ctx ends. A durable store makes those again
// that Kafka has not acknowledged by then.
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
