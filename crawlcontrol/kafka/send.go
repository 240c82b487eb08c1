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

// Notify sends notices, and reports whether all were acknowledged before ctx ended.
func (s *Service) Notify(ctx context.Context, notices ...crawlcontrol.Reply) bool {
	return s.send(ctx, notices)
}

// send sends replies, each to its application's topic first and then to the firehose. It waits
// until all are acknowledged, and reports false if ctx ended before.
func (s *Service) send(ctx context.Context, replies []crawlcontrol.Reply) bool {
	var own, all []message
	for _, r := range replies {
		if r.NoReply {
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

// message is a reply to one topic.
type message struct {
	topic string
	reply crawlcontrol.Reply
}

func tooLong(r crawlcontrol.Reply) crawlcontrol.Reply {
	return r.AsError(
		fmt.Errorf("the reply has %d bytes, more than a Kafka record may have; lower "+
			"monitor.max_domains", len(r.Body)))
}

// maxRecord is the longest reply that fits into a produce batch of maxReply with its header.
const maxRecord = maxReply - 1<<10

// produce sends messages and waits until they are acknowledged. If a broker refuses a message for
// good, and it is not needed because it goes to an application's own topic, produce gives it up. A
// message that is too long for a broker is sent again by itself, and then as an error.
func (s *Service) produce(ctx context.Context, messages []message, needed bool) bool {
	retry := backoff{}
	together := max(1, len(messages))
	made := map[string]int{} // topics that were created again, by round
	for round := 0; len(messages) > 0; round++ {
		var again []message
		missing, long := false, false
		for some := range slices.Chunk(messages, together) {
			for m, err := range s.produceOnce(ctx, some) {
				switch {
				case err == nil:
					s.counters.replies.Add(1)
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
					s.counters.produceErrors.Add(1)
					s.log.Warn().Err(err).Str("topic", m.topic).
						Msg("Kafka: a reply cannot be sent; trying again")
					missing = missing || isUnknown(err)
					again = append(again, m)
				}
			}
		}
		if long {
			together = 1
		}
		if messages = again; missing {
			// Otherwise the client would wait for the topic that was deleted, by its ID.
			s.client.PurgeTopicsFromProducing(messages[0].topic)
			_ = s.topics.create(ctx, messages[0].topic) // if this fails, the next attempt reports it
		}
		if len(messages) > 0 {
			retry.wait(ctx)
		}
	}
	return ctx.Err() == nil
}

// produceOnce sends messages once and yields the result of each.
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

// isUnknown reports whether the topic does not exist, or no longer under its former ID.
func isUnknown(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// makeAgain creates an application's topic again after somebody has deleted it, and reports whether
// another attempt makes sense. made has the round in which that was done, because once is enough.
func (s *Service) makeAgain(ctx context.Context, topic string, round int, made map[string]int) bool {
	if at, tried := made[topic]; tried {
		return at == round
	}
	s.client.PurgeTopicsFromProducing(topic) // drops what the client knows of the deleted topic
	made[topic] = -1
	if s.topics.create(ctx, topic) == nil {
		made[topic] = round
	}
	return made[topic] == round
}

func isTooLong(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// final reports whether another attempt would fail, too.
func final(err error) bool {
	for _, one := range []error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException,
		kerr.TopicAuthorizationFailed,
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.PolicyViolation, kerr.InvalidRecord,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (s *Service) giveUp(topic string, err error) {
	s.counters.givenUp.Add(1)
	s.topics.forget(topic)
	s.log.Warn().Err(err).Str("topic", topic).Msg("Kafka: a reply goes to the firehose only")
}
