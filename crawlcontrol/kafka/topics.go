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

// firehose is the topic that all replies go to.
func (s *Service) firehose() string { return s.cfg.Prefix + ".outbound_firehose" }

// maxTopic is the longest name of a topic.
const maxTopic = 249

// topicOf is an application's own topic, or nothing where it has none: its name cannot be part of one.
func (s *Service) topicOf(app string) string {
	name := s.cfg.Prefix + ".outbound_" + app
	if !s.cfg.AppIDTopics || app == "" || app == "firehose" || len(name) > maxTopic || strings.ContainsFunc(app, strange) {
		return ""
	}
	return name
}

// strange reports whether no topic's name has a character.
func strange(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-'
}

// makeTopics makes the topics that requests come from, and the firehose, where they are missing. It tries until brokers
// have answered or ctx ends; where they do not allow it, somebody else has to.
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

// topics makes topics, and remembers for a while how that went.
type topics struct {
	admin *kadm.Client

	mu    sync.Mutex // guards all below; held for memory work only
	known map[string]belief
}

type belief struct {
	there bool
	until time.Time
}

// ensure makes a topic where it is missing. false: it is not there.
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
				log.Warn().Err(err).Str("topic", topic).Msg("Kafka: topic cannot be made; its replies go to the firehose only")
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
	t.known[topic] = belief{there: there, until: time.Now().Add(knownLife)}
}

func (t *topics) forget(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, topic)
}

// create makes a topic as the brokers' defaults have it. That it is there is no error, also where it may not be made.
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
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.PolicyViolation, kerr.InvalidTopicException,
		kerr.InvalidReplicationFactor, kerr.InvalidPartitions, kerr.UnsupportedVersion, kerr.InvalidRequest, kerr.InvalidConfig,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
