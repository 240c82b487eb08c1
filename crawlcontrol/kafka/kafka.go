// Package kafka transports crawl control over Kafka. It commits the offset of a request after the
// brokers have acknowledged its reply. So each request is answered at least once, whatever fails in
// between.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/configs"
	"urlserver/crawlcontrol"
	"urlserver/docindex"
)

const (
	maxPoll        = 2000             // records handled at once
	maxFetch       = 16 << 20         // bytes in flight from a broker; a larger record comes alone
	maxReply       = 1 << 20          // bytes of a produce batch: the default limit of brokers
	sessionTimeout = 10 * time.Second // another member takes over from a dead one after that
	firstRetry     = 100 * time.Millisecond
	maxRetry       = 10 * time.Second
	knownLife      = 5 * time.Minute // how long a topicState is trusted
	maxKnown       = 10_000          // topics with a topicState
	callTimeout    = 10 * time.Second
	forgetAgain    = 5 * time.Second // deleted request topics are forgotten no more often
)

// Handler handles requests, such as [crawlcontrol.Handler].
type Handler interface {
	Do(ctx context.Context, messages [][]byte) (replies []crawlcontrol.Reply, done int, err error)
}

var _ Handler = (*crawlcontrol.Handler)(nil)

// Config is the configuration of a Service.
type Config struct {
	Settings configs.CrawlControl
	Handler  Handler
	Log      zerolog.Logger
}

// Service answers requests that come over Kafka. Create it with New, then call Run once.
type Service struct {
	cfg      configs.CrawlControl
	handler  Handler
	log      zerolog.Logger
	client   *kgo.Client // for replies and topics
	topics   topics
	counters counters
	warnings warnings
	lag      lag

	deleted []string  // request topics that were deleted, as far as Run knows
	forgot  time.Time // when Run last made the client forget such
}

// New returns a service. It connects to nothing before Run.
func New(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg.Settings, handler: cfg.Handler, log: cfg.Log, lag: lag{parts: map[part]span{}}}
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	s.client, err = kgo.NewClient(append(opts,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(maxReply),
		// Many clients can read snappy only with an additional library.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
		// Otherwise a topic that was deleted delays the replies behind by 20 s.
		kgo.MetadataMinAge(firstRetry),
	)...)
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	s.topics = topics{admin: kadm.NewClient(s.client), known: map[string]topicState{}}
	return s, nil
}

// Run works until ctx ends. Requests in progress at that moment are not committed, so the next
// member of the group gets them again.
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
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // records of an aborted transaction are no requests
		kgo.KeepControlRecords(),                     // else the end of a transaction would be waiting for ever
		kgo.BlockRebalanceOnPoll(),                   // until what was polled is committed
		kgo.OnPartitionsRevoked(s.lag.gone),
		kgo.OnPartitionsLost(s.lag.gone),
		kgo.FetchMaxBytes(maxFetch),
		kgo.MaxConcurrentFetches(2),
		kgo.MetadataMaxAge(30*time.Second), // a new topic is found after that
	)...)
	if err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	defer consumer.CloseAllowingRebalance()
	s.log.Info().Strs("brokers", s.cfg.Brokers).Str("group", s.cfg.Group).Strs("topics",
		s.cfg.Inbound).Msg("crawl control listens on Kafka")
	for ctx.Err() == nil {
		s.poll(ctx, consumer)
		consumer.AllowRebalance()
		s.readAgain(consumer)
	}
	return nil
}

// poll handles the next records. It returns when all of them are committed, or ctx has ended.
func (s *Service) poll(ctx context.Context, consumer *kgo.Client) {
	rest := s.fetch(ctx, consumer)
	retry := backoff{}
	for len(rest) > 0 && ctx.Err() == nil {
		replies, done, err := s.do(ctx, rest, nil)
		if done > 0 {
			s.settle(ctx, consumer, rest[:done], replies)
			rest, retry = rest[done:], backoff{}
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, docindex.ErrFull):
			s.waitForRoom(ctx, consumer, rest)
			return
		default:
			s.failed(err)
			retry.wait(ctx)
		}
	}
}

// fetch returns the next records.
func (s *Service) fetch(ctx context.Context, consumer *kgo.Client) []*kgo.Record {
	fetches := consumer.PollRecords(ctx, maxPoll)
	fetches.EachError(func(topic string, partition int32, err error) {
		if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			s.counters.fetchErrors.Add(1)
			if errors.Is(err, kerr.UnknownTopicID) && !slices.Contains(s.deleted, topic) {
				s.deleted = append(s.deleted, topic)
			}
			if s.warnings.repeats(fmt.Sprint("read ", topic, " ", partition, code(err))) {
				return
			}
			s.log.Warn().Err(err).Str("topic", topic).Int32("partition",
				partition).Msg("Kafka: records cannot be read; trying again")
		}
	})
	fetches.EachPartition(s.lag.polled)
	return fetches.Records()
}

// readAgain makes the client forget request topics that were deleted. Otherwise it would not read what was made
// under their names since.
func (s *Service) readAgain(consumer *kgo.Client) {
	if len(s.deleted) == 0 || time.Since(s.forgot) < forgetAgain {
		return
	}
	consumer.PurgeTopicsFromConsuming(s.deleted...)
	consumer.AddConsumeTopics(s.deleted...)
	s.deleted, s.forgot = nil, time.Now()
}

// settle commits handled records and acknowledges their replies.
func (s *Service) settle(
	ctx context.Context, consumer *kgo.Client, records []*kgo.Record, replies []crawlcontrol.Reply,
) {
	if s.commit(ctx, consumer, records) {
		acknowledged(ctx, replies)
	}
	s.lag.handled(records)
}

// failed records that the store did not do a request.
func (s *Service) failed(err error) {
	s.counters.storeErrors.Add(1)
	s.log.Warn().Err(err).Msg("crawl control: a request failed; trying again")
}

// do handles records and sends the replies. The first done records are handled, and the brokers
// have acknowledged their replies. It passes over those that are answered, whose replies are among
// replies once their turn has come.
func (s *Service) do(ctx context.Context, records []*kgo.Record, answered early) (replies []crawlcontrol.Reply,
	done int, err error) {
	var messages [][]byte
	var places []int // of messages in records
	for i, r := range records {
		if r.Attrs.IsControl() || answered[r] != nil {
			continue // the end of a transaction, or a stop
		}
		if r.Value == nil {
			s.counters.skipped.Add(1) // a tombstone that compaction left: no request
			continue
		}
		messages, places = append(messages, r.Value), append(places, i)
	}
	replies, done, err = s.handler.Do(ctx, messages)
	if !s.send(ctx, replies) {
		return nil, 0, ctx.Err()
	}
	s.counters.requests.Add(uint64(done))
	if done == len(messages) {
		done = len(records)
	} else {
		done = places[done]
	}
	for _, r := range records[:done] {
		replies = append(replies, answered[r]...)
	}
	return replies, done, err
}

// acknowledged acknowledges replies whose requests do not come again.
func acknowledged(ctx context.Context, replies []crawlcontrol.Reply) {
	for i := range replies {
		replies[i].Acknowledged(ctx)
	}
}

// commit commits the offsets of handled records, even after ctx has ended. If it fails the records
// come again.
func (s *Service) commit(ctx context.Context, consumer *kgo.Client, records []*kgo.Record) (committed bool) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := consumer.CommitRecords(within, records...); err != nil {
		s.counters.commitErrors.Add(1)
		s.log.Warn().Err(err).Msg("Kafka: offsets cannot be committed; requests may be answered twice")
		return false
	}
	return true
}

// backoff waits longer each time.
type backoff struct{ next time.Duration }

func (b *backoff) wait(ctx context.Context) {
	timer := time.NewTimer(b.longer())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// longer returns how long to wait.
func (b *backoff) longer() time.Duration {
	b.next = min(max(2*b.next, firstRetry), maxRetry)
	return b.next
}
