package kafka_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerTo makes the fake broker answer all requests of a kind by do.
func answerTo(t *testing.T, b *broker, key kmsg.Key, do func(req kmsg.Request) (kmsg.Response, error, bool)) {
	t.Helper()
	b.fake.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.fake.KeepControl()
		return do(req)
	})
}

// refuseAll returns an answer that refuses all records.
func refuseAll(req *kmsg.ProduceRequest, code int16) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, in := range req.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = in.Topic, in.TopicID
		for _, p := range in.Partitions {
			part := kmsg.NewProduceResponseTopicPartition()
			part.Partition, part.ErrorCode = p.Partition, code
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// A reply is acknowledged on the application's topic before it goes to the firehose, and there
// before the offset is committed.
func TestOrderOfReplies(t *testing.T) {
	t.Parallel()
	b := fakeBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, cfg.Inbound...)
	feed(t, b, cfg.Inbound[0], info("one"))
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	answerTo(t, b, kmsg.Produce, func(req kmsg.Request) (kmsg.Response, error, bool) {
		for range req.(*kmsg.ProduceRequest).Topics {
			note("produce")
		}
		return nil, nil, false
	})
	answerTo(t, b, kmsg.OffsetCommit, func(kmsg.Request) (kmsg.Response, error, bool) {
		note("commit")
		return nil, nil, false
	})
	s := start(t, cfg, doer(newCrawls()))
	read(t, b, cfg.Prefix+".outbound_firehose").next(1)
	eventually(t, "commit", func() bool { return committed(t, b, cfg.Group, cfg.Inbound[0]) == 1 })
	s.stop()
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "produce produce commit") {
		t.Errorf("order is %s; want the topic, the firehose, the commit", got)
	}
}

// If the reply cannot be acknowledged, nothing is committed. The next service answers.
func TestNoCommitWithoutReply(t *testing.T) {
	t.Parallel()
	b := fakeBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, append(cfg.Inbound, cfg.Prefix+".outbound_firehose")...)
	feed(t, b, cfg.Inbound[0], info("one"))
	tried := make(chan struct{}, 1)
	answerTo(t, b, kmsg.Produce, func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := refuseAll(req.(*kmsg.ProduceRequest), kerr.NotEnoughReplicas.Code)
		select {
		case tried <- struct{}{}:
		default:
		}
		return resp, nil, true
	})
	s := start(t, cfg, doer(newCrawls()))
	<-tried
	<-tried
	s.stop()
	if n := committed(t, b, cfg.Group, cfg.Inbound[0]); n > 0 {
		t.Errorf("%d offsets are committed without a reply", n)
	}
	b.restart(t) // the broker forgets how to answer
	start(t, cfg, doer(newCrawls()))
	if got := read(t, b, cfg.Prefix+".outbound_firehose").next(1); uuids(got)["one"] != 1 {
		t.Errorf("the firehose has %q", got)
	}
}

// A reply that is too long for a broker is sent as an error. Replies sent together with it are
// unchanged.
func TestBrokerTakesLess(t *testing.T) {
	t.Parallel()
	const most = 3000 // bytes of a batch, compressed
	b := fakeBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, append(cfg.Inbound, cfg.Prefix+".outbound_firehose", cfg.Prefix+".outbound_testapp")...)
	feed(t, b, cfg.Inbound[0], stop("first", "c1"), info("big"), stop("last", "c2"))
	answerTo(t, b, kmsg.Produce, func(req kmsg.Request) (kmsg.Response, error, bool) {
		long := false
		for _, topic := range req.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				long = long || len(p.Records) > most
			}
		}
		if !long {
			return nil, nil, false
		}
		return refuseAll(req.(*kmsg.ProduceRequest), kerr.MessageTooLarge.Code), nil, true
	})
	c := newCrawls()
	c.domains = 2000
	start(t, cfg, doer(c))
	for _, topic := range []string{".outbound_testapp", ".outbound_firehose"} {
		got := read(t, b, cfg.Prefix+topic).next(3)
		n, errors := uuids(got), 0
		for _, one := range got {
			if strings.HasPrefix(one, `{"error":"the reply has`) && strings.Contains(one, `"uuid":"big"`) {
				errors++
			}
		}
		if n["first"] != 1 || n["last"] != 1 || n["big"] != 1 || errors != 1 {
			t.Errorf("%s has %.300q; want each, and an error for the big one", topic, got)
		}
	}
}

// If the service may not create topics, the firehose still gets every reply, once an operator has
// created it.
func TestTopicsMayNotBeMade(t *testing.T) {
	t.Parallel()
	b := fakeBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, append(cfg.Inbound, cfg.Prefix+".outbound_firehose")...)
	answerTo(t, b, kmsg.CreateTopics, func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, in := range req.(*kmsg.CreateTopicsRequest).Topics {
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ErrorCode = in.Topic, kerr.TopicAuthorizationFailed.Code
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	feed(t, b, cfg.Inbound[0], info("one"), info("two"))
	s := start(t, cfg, doer(newCrawls()))
	if got := uuids(read(t, b, cfg.Prefix+".outbound_firehose").next(2)); got["one"] != 1 || got["two"] != 1 {
		t.Errorf("the firehose has %v", got)
	}
	if log := s.log.String(); strings.Count(log, "topic cannot be made") != 1 {
		t.Errorf("the log has it not once:\n%s", log)
	}
}

func TestWithoutAppTopics(t *testing.T) {
	t.Parallel()
	b := fakeBroker(t)
	cfg := settings(t, b)
	cfg.AppIDTopics = false
	makeTopic(t, b, 1, cfg.Inbound[0])
	feed(t, b, cfg.Inbound[0], info("one"))
	start(t, cfg, doer(newCrawls()))
	read(t, b, cfg.Prefix+".outbound_firehose").next(1)
	if topics := topicsOf(t, b); strings.Contains(topics, "testapp") {
		t.Errorf("there are topics %s", topics)
	}
}

// The brokers start later; records without a value are skipped.
func TestBrokerComesLater(t *testing.T) {
	t.Parallel()
	b := fakeBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, cfg.Inbound...)
	ctx := t.Context()
	if err := client(t, b).ProduceSync(ctx, &kgo.Record{Topic: cfg.Inbound[0]}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	feed(t, b, cfg.Inbound[0], info("one"))
	b.fake.Close()
	s := start(t, cfg, doer(newCrawls()))
	eventually(t, "it says that it cannot reach the broker", func() bool {
		return strings.Contains(s.log.String(), "Kafka")
	})
	b.restart(t)
	if got := uuids(read(t, b, cfg.Prefix+".outbound_firehose").next(1)); got["one"] != 1 {
		t.Errorf("the firehose has %v", got)
	}
	eventually(t, "both are committed",
		func() bool { return committed(t, b, cfg.Group, cfg.Inbound[0]) == 2 })
}
