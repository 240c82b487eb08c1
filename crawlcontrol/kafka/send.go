package kafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/crawlcontrol"
)

// Notify sends notices, and answers whether all were acknowledged before ctx ended.
func (s *Service) Notify(ctx context.Context, notices ...crawlcontrol.Reply) bool {
	return s.send(ctx, notices)
}

// send sends replies, each to its application's topic first and then to the firehose, and waits until all are
// acknowledged; false: ctx ended before.
func (s *Service) send(ctx context.Context, replies []crawlcontrol.Reply) bool {
	var own, all []message
	for _, r := range replies {
		if r.Quiet {
			continue
		}
		if len(r.Body) > maxRecord {
			r = tooLong(r)
		}
		if topic := s.topicOf(r.App); topic != "" && s.topics.ensure(ctx, s.log, topic) {
			own = append(own, message{topic, r})
		}
		all = append(all, message{s.firehose(), r})
	}
	s.produce(ctx, own, false)
	return s.produce(ctx, all, true)
}

// message is a reply on its way to a topic.
type message struct {
	topic string
	reply crawlcontrol.Reply
}

func tooLong(r crawlcontrol.Reply) crawlcontrol.Reply {
	return r.Instead(fmt.Errorf("the reply has %d bytes, more than a Kafka record may have; lower monitor.max_domains", len(r.Body)))
}

// maxRecord is the longest reply that a produce batch of maxReply takes, with something to spare for its header.
const maxRecord = maxReply - 1<<10

// produce sends messages and waits until they are acknowledged. Those that a broker refuses for good are given up where they
// need not get there: on an application's own topic. What is too long for a broker goes again each by itself, and if it still
// is, as an error.
func (s *Service) produce(ctx context.Context, messages []message, needed bool) bool {
	retry := backoff{}
	together := max(1, len(messages))
	made := map[string]int{} // topics, anew
	for round := 0; len(messages) > 0; round++ {
		var again []message
		missing, long := false, false
		for some := range slices.Chunk(messages, together) {
			for m, err := range s.produceOnce(ctx, some) {
				switch {
				case err == nil:
					s.figures.replies.Add(1)
				case ctx.Err() != nil:
					return false
				case isTooLong(err) && together > 1:
					long = true
					again = append(again, m)
				case isTooLong(err) && !m.reply.Refused:
					again = append(again, message{m.topic, tooLong(m.reply)})
				case isUnknown(err) && !needed && s.makeAgain(ctx, m.topic, round, made):
					again = append(again, m)
				case !needed && final(err):
					s.giveUp(m.topic, err)
				default:
					s.figures.produceErrors.Add(1)
					s.log.Warn().Err(err).Str("topic", m.topic).Msg("Kafka: a reply cannot be sent; trying again")
					missing = missing || isUnknown(err)
					again = append(again, m)
				}
			}
		}
		if long {
			together = 1
		}
		if messages = again; missing {
			_ = s.topics.create(ctx, messages[0].topic) // if it cannot be made, the next try tells again
		}
		if len(messages) > 0 {
			retry.wait(ctx)
		}
	}
	return ctx.Err() == nil
}

// produceOnce sends messages in one go and tells how each has fared.
func (s *Service) produceOnce(ctx context.Context, some []message) iter.Seq2[message, error] {
	records, of := make([]*kgo.Record, len(some)), make(map[*kgo.Record]message, len(some))
	for i, m := range some {
		records[i] = &kgo.Record{Topic: m.topic, Value: m.reply.Body}
		of[records[i]] = m
	}
	return func(yield func(message, error) bool) {
		for _, r := range s.client.ProduceSync(ctx, records...) {
			if !yield(of[r.Record], r.Err) {
				return
			}
		}
	}
}

// isUnknown says that there is no such topic, or none any more by the ID that it had.
func isUnknown(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// makeAgain makes an application's topic anew that somebody has deleted, and answers whether another try is worth while. made
// says in which round that was done: once is enough.
func (s *Service) makeAgain(ctx context.Context, topic string, round int, made map[string]int) bool {
	if at, tried := made[topic]; tried {
		return at == round
	}
	s.client.PurgeTopicsFromProducing(topic) // what is known of the one that is gone
	made[topic] = -1
	if s.topics.create(ctx, topic) == nil {
		made[topic] = round
	}
	return made[topic] == round
}

func isTooLong(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// final reports whether trying again would not help.
func final(err error) bool {
	for _, one := range []error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException, kerr.TopicAuthorizationFailed,
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.PolicyViolation, kerr.InvalidRecord,
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
