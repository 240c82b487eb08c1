package kafka_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
)

// uuids counts replies by their uuid.
func uuids(all []string) map[string]int {
	n := map[string]int{}
	for _, text := range all {
		if _, rest, ok := strings.Cut(text, `"uuid":"`); ok {
			uuid, _, _ := strings.Cut(rest, `"`)
			n[uuid]++
		}
	}
	return n
}

// A new group reads from the earliest offset. Replies go to both topics, which are created. Bad
// requests are answered, and the next ones are handled.
func TestRequestsAndReplies(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound[0])
		in := cfg.Inbound[0]
		feed(t, b, in, info("before"), crawl("http://a.test/1"))
		c := newCrawls()
		c.pending = 28
		s := start(t, cfg, doer(c))
		own := read(t, b, cfg.Prefix+".outbound_testapp")
		got := own.next(1)
		if !strings.Contains(got[0], `"total_pending":28,"total_domains":0,"low_priority":1,"high_priority":9`) {
			t.Errorf("reply is %s", got[0])
		}
		feed(t, b, in, "poison", "\xff\xfe{", strings.Repeat("[", 500_000),
			`{"action":"stop","appid":"testapp","uuid":"bad"}`,
			`{"action":"info","appid":"café","uuid":"notInTopic","spiderid":"link"}`, stop("last", "c1"))
		feed(t, b, cfg.Inbound[1], info("other topic")) // the service has created the topic
		got = append(got, own.next(3)...)
		all := read(t, b, cfg.Prefix+".outbound_firehose").next(8)
		if n := uuids(got); len(got) != 4 || n["before"] != 1 || n["bad"] != 1 || n["last"] != 1 ||
			n["other topic"] != 1 {
			t.Errorf("the application's topic has %q", got)
		}
		if n := uuids(all); len(all) != 8 || len(n) != 5 || n["notInTopic"] != 1 {
			t.Errorf("the firehose has %.3000q", all)
		}
		errors := slices.DeleteFunc(all,
			func(text string) bool { return !strings.HasPrefix(text, `{"error":`) })
		if len(errors) != 4 {
			t.Errorf("there are %d errors; want 4: %q", len(errors), errors)
		}
		eventually(t, "what is replied is committed", func() bool {
			return committed(t, b, cfg.Group, in) == 8 && committed(t, b, cfg.Group, cfg.Inbound[1]) == 1
		})
		eventually(t, "the stop counts as told", func() bool { return c.toldOf("c1") == 1 })
		s.stop()
		if c.seen("http://a.test/1") != 1 || committed(t, b, cfg.Group, in) != 8 ||
			committed(t, b, cfg.Group, cfg.Inbound[1]) != 1 {
			t.Errorf("stored %d times, %d and %d committed; want 1, 8 and 1", c.seen("http://a.test/1"),
				committed(t, b, cfg.Group, in), committed(t, b, cfg.Group, cfg.Inbound[1]))
		}
	})
}

func TestNotices(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		s := start(t, cfg, doer(newCrawls()))
		id := docindex.CrawlID{Spider: "link", App: "testapp", Crawl: "c1"}
		if !s.Notify(t.Context(), crawlcontrol.ExpiredNotice(id, 75, time.Unix(1, 0))) {
			t.Error("Notify: not acknowledged")
		}
		want := `{"action":"expired","total_expired":75,"spiderid":"link","appid":"testapp","crawlid":"c1","server_time":1}`
		for _, topic := range []string{"testapp", "firehose"} {
			if got := read(t, b, cfg.Prefix+".outbound_"+topic).next(1); got[0] != want {
				t.Errorf("%s has %q; want %s", topic, got, want)
			}
		}
	})
}

// While the store is away nothing is answered, committed or dropped. Afterwards all requests are.
func TestStoreAway(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 2, cfg.Inbound[0])
		c := newCrawls()
		c.set(true)
		start(t, cfg, doer(c))
		var urls, messages []string
		for i := range 3000 {
			urls = append(urls, fmt.Sprintf("http://a.test/%d", i))
			messages = append(messages, crawl(urls[i]))
		}
		feed(t, b, cfg.Inbound[0], messages...)
		feed(t, b, cfg.Inbound[0], info("one"))
		<-c.tried
		<-c.tried // it tries twice
		if n := committed(t, b, cfg.Group, cfg.Inbound[0]); n != 0 {
			t.Errorf("%d offsets are committed while the store is away", n)
		}
		c.set(false)
		read(t, b, cfg.Prefix+".outbound_firehose").until("answer", func(all []string) bool {
			return uuids(all)["one"] > 0
		})
		eventually(t, "all are stored and committed", func() bool {
			return committed(t, b, cfg.Group, cfg.Inbound[0]) == 3001 &&
				!slices.ContainsFunc(urls, func(u string) bool {
					return c.seen(u) == 0
				})
		})
	})
}

// eventually waits for a state that causes no event.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// Requests that were not committed when a service ended are handled again by the next one.
func TestEndsBeforeCommit(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound[0])
		c := newCrawls()
		c.blocking = make(chan struct{})
		first := start(t, cfg, doer(c))
		feed(t, b, cfg.Inbound[0], info("a"), stop("b", "c1"), info("c"))
		eventually(t, "the stop is under way", func() bool { return c.begun.Load() == 1 })
		first.stop()
		if n := c.toldOf("c1"); n != 0 {
			t.Errorf("the stop counts as told %d times before its reply is there", n)
		}
		close(c.blocking)
		start(t, cfg, doer(c))
		read(t, b, cfg.Prefix+".outbound_firehose").until("three answers", func(all []string) bool {
			n := uuids(all)
			return n["a"] >= 1 && n["b"] >= 1 && n["c"] >= 1
		})
		if c.stopped["c1"] != 2 {
			t.Errorf("stopped %d times; want the first try and the second", c.stopped["c1"])
		}
	})
}

// The metrics count requests that have arrived and are not handled, and handled ones.
func TestFigures(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound[0])
		c := newCrawls()
		c.blocking = make(chan struct{})
		feed(t, b, cfg.Inbound[0], info("a"), stop("b", "c1"), info("c"))
		s := start(t, cfg, doer(c))
		eventually(t, "the stop is under way", func() bool { return c.begun.Load() == 1 })
		if f := s.Counts(); f.Lag != 3 || f.Requests != 0 {
			t.Errorf("while the first of three is under way: %+v", f)
		}
		close(c.blocking)
		eventually(t, "all is done", func() bool { return s.Counts().Lag == 0 })
		if f := s.Counts(); f.Requests != 3 || f.Replies < 3 || f.GivenUp != 0 {
			t.Errorf("after three requests: %+v", f)
		}
		feed(t, b, cfg.Inbound[0], info("d"))
		eventually(t, "another one is done",
			func() bool { f := s.Counts(); return f.Requests == 4 && f.Lag == 0 })
	})
}

// The metrics say whether a broker is connected, whichever side closes the connection.
func TestConnected(t *testing.T) {
	t.Parallel() // it mostly waits
	b := fakeBroker(t)
	s := start(t, settings(t, b), doer(newCrawls()))
	eventually(t, "it is connected", func() bool { return s.Counts().Connected })
	b.fake.Close()
	eventually(t, "it is not connected", func() bool { return !s.Counts().Connected })
	b.restart(t)
	eventually(t, "it is connected again", func() bool { return s.Counts().Connected })
	s.stop()
	eventually(t, "it has hung up", func() bool { return !s.Counts().Connected })
}

// The broker stops and starts while requests arrive. Each is answered at least once.
func TestBrokerRestarts(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 2, cfg.Inbound[0])
		c := newCrawls()
		start(t, cfg, doer(c))
		var want []string
		for round := range 2 {
			if round > 0 {
				b.restart(t)
			}
			for i := range 20 {
				want = append(want, fmt.Sprintf("%d-%d", round, i))
				feed(t, b, cfg.Inbound[0], info(want[len(want)-1]), crawl("http://a.test/"+want[len(want)-1]))
			}
		}
		for _, topic := range []string{"testapp", "firehose"} {
			read(t, b, cfg.Prefix+".outbound_"+topic).until("answer to each", func(all []string) bool {
				n := uuids(all)
				return !slices.ContainsFunc(want, func(uuid string) bool { return n[uuid] == 0 })
			})
		}
		for _, uuid := range want {
			if c.seen("http://a.test/"+uuid) == 0 {
				t.Errorf("crawl %s is lost", uuid)
			}
		}
	})
}

// Two daemons share the requests of a group. One ends, and the other continues.
func TestTwoInAGroup(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 8, cfg.Inbound[0])
		c := newCrawls()
		one := start(t, cfg, doer(c))
		var want []string
		send := func(n int) {
			for range n {
				want = append(want, fmt.Sprintf("u%d", len(want)))
				feed(t, b, cfg.Inbound[0], info(want[len(want)-1]),
					stop("s"+want[len(want)-1], want[len(want)-1]))
			}
		}
		send(20)
		start(t, cfg, doer(c))
		send(20)
		one.stop()
		send(20)
		read(t, b, cfg.Prefix+".outbound_firehose").until("answer to each", func(all []string) bool {
			n := uuids(all)
			return !slices.ContainsFunc(want,
				func(uuid string) bool { return n[uuid] == 0 || n["s"+uuid] == 0 })
		})
	})
}

// If an application's topic is deleted, it is created again for the next reply, also for one that
// is being sent.
func TestTopicIsDeleted(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound[0])
		start(t, cfg, doer(newCrawls()))
		own := cfg.Prefix + ".outbound_testapp"
		feed(t, b, cfg.Inbound[0], info("one"))
		read(t, b, own).next(1)
		admin := kadm.NewClient(client(t, b))
		if _, err := admin.DeleteTopic(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the topic is gone", func() bool { return !strings.Contains(topicsOf(t, b), own) })
		feed(t, b, cfg.Inbound[0], info("two"), info("three"))
		if n := uuids(read(t, b, own).next(2)); n["two"] != 1 || n["three"] != 1 {
			t.Errorf("the topic has %v; want both that came since it was made anew", n)
		}
		read(t, b, cfg.Prefix+".outbound_firehose").next(3)
	})
}

// The firehose and a request topic are deleted while the service runs. The service makes the firehose anew, and
// reads the request topic that somebody makes.
func TestTopicsAreMadeAgain(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		in, firehose := cfg.Inbound[0], cfg.Prefix+".outbound_firehose"
		makeTopic(t, b, 1, in)
		start(t, cfg, doer(newCrawls()))
		feed(t, b, in, info("one"))
		read(t, b, firehose).next(1)
		admin := kadm.NewClient(client(t, b))
		remove := func(topic string) {
			if _, err := admin.DeleteTopic(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the topic is gone", func() bool { return !strings.Contains(topicsOf(t, b), topic) })
		}
		remove(firehose)
		feed(t, b, in, info("two"))
		eventually(t, "the firehose is there again", func() bool { return strings.Contains(topicsOf(t, b), firehose) })
		if n := uuids(read(t, b, firehose).next(1)); n["two"] != 1 {
			t.Errorf("the firehose has %v; want the reply that came after it was deleted", n)
		}
		remove(in)
		makeTopic(t, b, 1, in)
		feed(t, b, in, info("three"), info("four"))
		if n := uuids(read(t, b, firehose).next(3)); n["three"] != 1 || n["four"] != 1 {
			t.Errorf("the firehose has %v; want the replies to requests in the topic that was made anew", n)
		}
	})
}

// A reply that is too long for a record is replaced by an error. The next requests are answered.
func TestReplyTooLong(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound[0])
		c := newCrawls()
		c.domains = 10_000
		start(t, cfg, doer(c))
		feed(t, b, cfg.Inbound[0], info("big"), stop("next", "c1"))
		got := read(t, b, cfg.Prefix+".outbound_testapp").next(2)
		if !strings.HasPrefix(got[0], `{"error":"the reply has`) ||
			!strings.Contains(got[0], `"uuid":"big"`) || uuids(got)["next"] != 1 {
			t.Errorf("replies are %.500q", got)
		}
	})
}
