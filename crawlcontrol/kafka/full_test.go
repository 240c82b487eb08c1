package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// While the index is full, requests to crawl wait in their order. Stops are answered wherever they are, and
// other partitions go on, however many requests wait.
func TestStopWhileIndexIsFull(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound...)
		c := newCrawls()
		c.setFull(true)
		s := start(t, cfg, doer(c))
		all := read(t, b, cfg.Prefix+".outbound_firehose")
		var replies []string
		wait := func(uuid string) {
			t.Helper()
			replies = append(replies, all.until(uuid, func(some []string) bool { return uuids(some)[uuid] > 0 })...)
		}
		crawling, acting := cfg.Inbound[1], cfg.Inbound[0]
		feed(t, b, crawling, crawl("http://a.test/first"), stop("s1", "c2"), info("behind"),
			crawl("http://a.test/next"))
		wait("s1")
		feed(t, b, crawling, stop("s2", "c3"))
		wait("s2")
		var many []string
		for i := range 20_000 {
			many = append(many, crawl(fmt.Sprintf("http://a.test/%0100d", i)))
		}
		feed(t, b, crawling, many...)
		feed(t, b, acting, info("aside"), stop("s3", "c4"))
		wait("s3")
		eventually(t, "the other topic is committed", func() bool {
			return committed(t, b, cfg.Group, acting) == 2 && c.toldOf("c4") == 1
		})
		if n := committed(t, b, cfg.Group, crawling); n > 0 || c.toldOf("c2")+c.toldOf("c3") > 0 {
			t.Errorf("%d offsets are committed while their requests wait; want none", n)
		}
		c.setFull(false)
		wait("behind")
		eventually(t, "all is committed", func() bool {
			return committed(t, b, cfg.Group, crawling) == int64(5+len(many))
		})
		s.stop()
		if c.toldOf("c2") != 1 || c.toldOf("c3") != 1 || c.seen("http://a.test/first") != 1 {
			t.Errorf("told %d and %d times, stored %d times; want once", c.toldOf("c2"), c.toldOf("c3"),
				c.seen("http://a.test/first"))
		}
		for i := range many {
			if url := fmt.Sprintf("http://a.test/%0100d", i); c.seen(url) != 1 {
				t.Fatalf("%s is stored %d times; want once", url, c.seen(url))
			}
		}
		for uuid, n := range uuids(replies) {
			if n != 1 {
				t.Errorf("%s is answered %d times; want once", uuid, n)
			}
		}
		if len(uuids(replies)) != 5 {
			t.Errorf("answered are %v; want s1 to s3, behind and aside", uuids(replies))
		}
	})
}

// A member whose index is full lets another one join the group at once, which gets some of the partitions and
// what waits in them. The first member goes on with the others when there is room.
func TestMemberJoinsWhileIndexIsFull(t *testing.T) {
	const partitions = 4
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		cfg.Inbound = cfg.Inbound[1:]
		makeTopic(t, b, partitions, cfg.Inbound...)
		full, other := newCrawls(), newCrawls()
		full.setFull(true)
		first := start(t, cfg, doer(full))
		var records []*kgo.Record
		for i := range partitions {
			records = append(records, &kgo.Record{Topic: cfg.Inbound[0], Partition: int32(i),
				Value: []byte(crawl(fmt.Sprint("http://a.test/", i)))})
		}
		if err := client(t, b, kgo.RecordPartitioner(kgo.ManualPartitioner())).ProduceSync(t.Context(),
			records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		<-full.tried
		began := time.Now()
		second := start(t, cfg, doer(other))
		eventually(t, "the second member has some partitions", func() bool {
			return committed(t, b, cfg.Group, cfg.Inbound[0]) >= partitions/2
		})
		if took := time.Since(began); took > 30*time.Second { // some seconds; a member is put out after 60
			t.Errorf("the second member got partitions after %v", took)
		}
		full.setFull(false)
		eventually(t, "all is committed", func() bool {
			return committed(t, b, cfg.Group, cfg.Inbound[0]) == partitions
		})
		first.stop()
		second.stop()
		for i := range partitions {
			if url := fmt.Sprint("http://a.test/", i); full.seen(url)+other.seen(url) != 1 {
				t.Errorf("%s is stored %d and %d times; want once", url, full.seen(url), other.seen(url))
			}
		}
	})
}
