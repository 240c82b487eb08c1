package kafka

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// firehose returns the topic of all replies.
func (s *Service) firehose() string { return s.cfg.Prefix + ".outbound_firehose" }

// maxTopic is the most characters that a topic's name may have.
const maxTopic = 249

// topicOf returns an application's own topic, or "" if its name cannot be part of a topic's.
func (s *Service) topicOf(app string) string {
	name := s.cfg.Prefix + ".outbound_" + app
	if !s.cfg.AppIDTopics || app == "" || app == "firehose" || len(name) > maxTopic ||
		strings.ContainsFunc(app, notInTopic) {
		return ""
	}
	return name
}

// notInTopic reports whether the names of topics cannot have the character.
func notInTopic(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' &&
		c != '-'
}

// makeTopics creates the request topics and the firehose if they are missing. It tries until
// brokers have answered or ctx ends. If the brokers do not allow it, an operator has to create
// them.
func (s *Service) makeTopics(ctx context.Context) {
	for _, topic := range append([]string{s.firehose()}, s.cfg.Inbound...) {
		retry := backoff{}
		for ctx.Err() == nil {
			err := s.topics.create(ctx, topic)
			if err == nil {
				break
			}
			s.log.Warn().Err(err).Str("topic", topic).Msg("Kafka: topic is missing and cannot be made")
			if refuses(err) {
				break
			}
			retry.wait(ctx)
		}
	}
}

// topics creates topics, and caches the results for a while.
type topics struct {
	admin *kadm.Client

	mu    sync.Mutex // guards all below; held for memory work only
	known map[string]topicState
}

type topicState struct {
	there bool
	until time.Time
}

// ensure creates a topic if it is missing. It reports whether the topic exists.
func (t *topics) ensure(ctx context.Context, log zerolog.Logger, topic string) bool {
	t.mu.Lock()
	b, ok := t.known[topic]
	t.mu.Unlock()
	if ok && time.Now().Before(b.until) {
		return b.there
	}
	retry := backoff{}
	for {
		err := t.create(ctx, topic)
		if err == nil || refuses(err) {
			if err != nil {
				log.Warn().Err(err).Str("topic",
					topic).Msg("Kafka: topic cannot be made; its replies go to the firehose only")
			}
			t.remember(topic, err == nil)
			return err == nil
		}
		if ctx.Err() != nil {
			return false
		}
		log.Warn().Err(err).Str("topic", topic).Msg("Kafka: brokers do not answer; trying again")
		retry.wait(ctx)
	}
}

func (t *topics) remember(topic string, there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxKnown {
		clear(t.known)
	}
	t.known[topic] = topicState{there: there, until: time.Now().Add(knownLife)}
}

func (t *topics) forget(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, topic)
}

// create creates a topic with the brokers' defaults. It is no error if the topic exists, even if
// this service may not create any.
func (t *topics) create(ctx context.Context, topic string) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := t.admin.CreateTopic(within, -1, -1, nil, topic)
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	if !refuses(err) {
		return err
	}
	if list, listErr := t.admin.ListTopics(within, topic); listErr == nil && list.Has(topic) {
		return nil
	}
	return err
}

// refuses reports whether an error is a broker's decision.
func refuses(err error) bool {
	for _, one := range []error{
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.PolicyViolation,
		kerr.InvalidTopicException,
		kerr.InvalidReplicationFactor, kerr.InvalidPartitions, kerr.UnsupportedVersion, kerr.InvalidRequest,
		kerr.InvalidConfig,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
