package kafka_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A request topic is deleted while a request in it waits for room, and made again. The new one is read at once.
func TestTopicIsMadeAgainWhileIndexIsFull(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		in, firehose := cfg.Inbound[0], cfg.Prefix+".outbound_firehose"
		cfg.Inbound = cfg.Inbound[:1]
		makeTopic(t, b, 1, in)
		c := newCrawls()
		c.setFull(true)
		start(t, cfg, doer(c))
		feed(t, b, in, info("one"), info("two"), crawl("http://a.test/"))
		<-c.tried
		read(t, b, firehose).next(2)
		admin := kadm.NewClient(client(t, b))
		if _, err := admin.DeleteTopic(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the topic is gone", func() bool { return !strings.Contains(topicsOf(t, b), in) })
		makeTopic(t, b, 1, in)
		feed(t, b, in, info("three"))
		if n := uuids(read(t, b, firehose).next(3)); n["three"] != 1 {
			t.Errorf("the firehose has %v; want the reply to the request in the topic that was made anew", n)
		}
	})
}
