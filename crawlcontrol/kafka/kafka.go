// Package kafka brings the requests of crawl control from Kafka, and the replies there. A request's offset is committed
// once its reply is acknowledged, so each request is answered at least once, whatever dies in between.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/configs"
	"urlserver/crawlcontrol"
)

const (
	maxPoll        = 2000             // records done at once
	maxFetch       = 16 << 20         // bytes on their way from a broker; a larger record comes alone
	maxReply       = 1 << 20          // bytes of a produce batch: what brokers take unless told otherwise
	sessionTimeout = 10 * time.Second // after that another member takes over from one that has died
	firstRetry     = 100 * time.Millisecond
	maxRetry       = 10 * time.Second
	knownLife      = 5 * time.Minute // for so long it is believed that a topic is there, or cannot be made
	maxKnown       = 10_000          // topics so believed
	callTimeout    = 10 * time.Second
)

// Doer does requests; [monitor.Monitor] is one.
type Doer interface {
	Do(ctx context.Context, messages [][]byte) (replies []crawlcontrol.Reply, done int, err error)
}

var _ Doer = (*crawlcontrol.Monitor)(nil)

// Config is what a Service works with.
type Config struct {
	Settings configs.Monitor
	Monitor  Doer
	Log      zerolog.Logger
}

// Service answers requests that come over Kafka. Use New, then Run, once.
type Service struct {
	cfg     configs.Monitor
	monitor Doer
	log     zerolog.Logger
	client  *kgo.Client // for replies and topics
	topics  topics
	figures figures
	lag     lag
}

// New returns a service. Nothing is connected yet. Run ends it.
func New(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg.Settings, monitor: cfg.Monitor, log: cfg.Log, lag: lag{parts: map[part]span{}}}
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	s.client, err = kgo.NewClient(append(opts,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(maxReply),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // many clients read snappy with a library of its own only
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(firstRetry), // or else a topic that is gone holds up the replies behind for 20 s
	)...)
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	s.topics = topics{admin: kadm.NewClient(s.client), known: map[string]belief{}}
	return s, nil
}

// Run works until ctx ends. What is under way then is not committed, and comes again to whoever is next.
func (s *Service) Run(ctx context.Context) error {
	defer s.client.Close()
	s.makeTopics(ctx)
	if ctx.Err() != nil {
		return nil
	}
	opts, err := s.options()
	if err != nil {
		return err
	}
	consumer, err := kgo.NewClient(append(opts,
		kgo.ConsumerGroup(s.cfg.Group),
		kgo.ConsumeTopics(s.cfg.Inbound...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(sessionTimeout),
		kgo.HeartbeatInterval(sessionTimeout/5),
		kgo.DisableAutoCommit(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // what a producer takes back is no request
		kgo.BlockRebalanceOnPoll(),                   // until what was polled is committed
		kgo.OnPartitionsRevoked(s.lag.gone),
		kgo.OnPartitionsLost(s.lag.gone),
		kgo.FetchMaxBytes(maxFetch),
		kgo.MaxConcurrentFetches(2),
		kgo.MetadataMaxAge(30*time.Second), // so soon a topic is found that was made later
	)...)
	if err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	defer consumer.CloseAllowingRebalance()
	s.log.Info().Strs("brokers", s.cfg.Brokers).Str("group", s.cfg.Group).Strs("topics", s.cfg.Inbound).Msg("crawl control listens on Kafka")
	for ctx.Err() == nil {
		s.poll(ctx, consumer)
		consumer.AllowRebalance()
	}
	return nil
}

// poll deals with what has come. It returns once all of it is committed, or ctx has ended.
func (s *Service) poll(ctx context.Context, consumer *kgo.Client) {
	fetches := consumer.PollRecords(ctx, maxPoll)
	fetches.EachError(func(topic string, partition int32, err error) {
		if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			s.figures.fetchErrors.Add(1)
			s.log.Warn().Err(err).Str("topic", topic).Int32("partition", partition).Msg("Kafka: nothing can be read; trying on")
		}
	})
	fetches.EachPartition(s.lag.polled)
	rest := fetches.Records()
	retry := backoff{}
	for len(rest) > 0 && ctx.Err() == nil {
		replies, done, err := s.do(ctx, rest)
		if done > 0 {
			if s.commit(ctx, consumer, rest[:done]) {
				acknowledged(ctx, replies)
			}
			s.lag.dealt(rest[:done])
			rest, retry = rest[done:], backoff{}
		}
		if err != nil && ctx.Err() == nil {
			s.figures.storeErrors.Add(1)
			s.log.Warn().Err(err).Msg("crawl control: a request failed; trying again")
			retry.wait(ctx)
		}
	}
}

// do has records done and answered. The first done of them are through, and their replies acknowledged.
func (s *Service) do(ctx context.Context, records []*kgo.Record) (replies []crawlcontrol.Reply, done int, err error) {
	var messages [][]byte
	var places []int // of messages in records
	for i, r := range records {
		if r.Value == nil {
			s.figures.skipped.Add(1) // as compaction leaves it behind: no request, and nobody to answer
			continue
		}
		messages, places = append(messages, r.Value), append(places, i)
	}
	replies, done, err = s.monitor.Do(ctx, messages)
	if !s.send(ctx, replies) {
		return nil, 0, ctx.Err()
	}
	s.figures.requests.Add(uint64(done))
	if done == len(messages) {
		return replies, len(records), err
	}
	return replies, places[done], err
}

// acknowledged says so of replies whose requests do not come again.
func acknowledged(ctx context.Context, replies []crawlcontrol.Reply) {
	for i := range replies {
		replies[i].Acknowledged(ctx)
	}
}

// commit says that records are dealt with, also when ctx has ended. Where that fails they come again.
func (s *Service) commit(ctx context.Context, consumer *kgo.Client, records []*kgo.Record) (committed bool) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := consumer.CommitRecords(within, records...); err != nil {
		s.figures.commitErrors.Add(1)
		s.log.Warn().Err(err).Msg("Kafka: offsets cannot be committed; requests may be answered twice")
		return false
	}
	return true
}

// backoff waits longer and longer.
type backoff struct{ next time.Duration }

func (b *backoff) wait(ctx context.Context) {
	b.next = min(max(2*b.next, firstRetry), maxRetry)
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
