package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/monitor"
)

// Notify sends notices, and answers whether all were acknowledged before ctx ended.
func (s *Service) Notify(ctx context.Context, notices ...monitor.Reply) bool {
	return s.send(ctx, notices)
}

// send sends replies, each to its application's topic first and then to the firehose, and waits until all are
// acknowledged; false: ctx ended before.
func (s *Service) send(ctx context.Context, replies []monitor.Reply) bool {
	var own, all []*kgo.Record
	for _, r := range replies {
		if r.Quiet {
			continue
		}
		if size := len(r.Body); size > maxRecord {
			r = r.Instead(fmt.Errorf("the reply has %d bytes, more than a Kafka record may have; lower monitor.max_domains", size))
		}
		if topic := s.topicOf(r.App); topic != "" && s.topics.ensure(ctx, s.log, topic) {
			own = append(own, &kgo.Record{Topic: topic, Value: r.Body})
		}
		all = append(all, &kgo.Record{Topic: s.firehose(), Value: r.Body})
	}
	s.produce(ctx, own, false)
	return s.produce(ctx, all, true)
}

// maxRecord is the longest reply that a produce batch of maxReply takes, with something to spare for its header.
const maxRecord = maxReply - 1<<10

// produce sends records and waits until they are acknowledged. Those that a broker refuses for good are given up where they
// need not get there: on an application's own topic.
func (s *Service) produce(ctx context.Context, records []*kgo.Record, needed bool) bool {
	retry := backoff{}
	for len(records) > 0 {
		var again []*kgo.Record
		missing := false
		for _, r := range s.client.ProduceSync(ctx, records...) {
			switch {
			case r.Err == nil:
				s.figures.replies.Add(1)
			case ctx.Err() != nil:
				return false
			case !needed && final(r.Err):
				s.giveUp(r.Record.Topic, r.Err)
			default:
				s.figures.produceErrors.Add(1)
				s.log.Warn().Err(r.Err).Str("topic", r.Record.Topic).Msg("Kafka: a reply cannot be sent; trying again")
				missing = missing || errors.Is(r.Err, kerr.UnknownTopicOrPartition)
				again = append(again, &kgo.Record{Topic: r.Record.Topic, Value: r.Record.Value})
			}
		}
		if records = again; missing {
			_ = s.topics.create(ctx, records[0].Topic) // if it cannot be made, the next try tells again
		}
		if len(records) > 0 {
			retry.wait(ctx)
		}
	}
	return ctx.Err() == nil
}

// final reports whether trying again would not help.
func final(err error) bool {
	for _, one := range []error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException, kerr.TopicAuthorizationFailed,
		kerr.UnknownTopicOrPartition, kerr.PolicyViolation, kerr.InvalidRecord,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (s *Service) giveUp(topic string, err error) {
	s.figures.givenUp.Add(1)
	s.topics.forget(topic)
	s.log.Warn().Err(err).Str("topic", topic).Msg("Kafka: a reply goes to the firehose only")
}
