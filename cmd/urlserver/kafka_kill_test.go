package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// killed is a daemon with an index on disk and requests from Kafka, which is killed and started
// again.
type killed struct {
	t      *testing.T
	broker string
	wire   *kafkaProxy
	file   string // its settings file
	prefix string // of topics
	daemon *child
}

// TestKilledOverKafka kills daemons in the middle of a request or a notice.
func TestKilledOverKafka(t *testing.T) {
	t.Parallel() // it mostly waits
	if testing.Short() {
		t.Skip("waits until the broker takes killed daemons for dead")
	}
	t.Run("kfake", func(t *testing.T) { killAll(t, fakeBroker(t)) })
	t.Run("kafka", func(t *testing.T) { killAll(t, realBroker(t)) })
}

func killAll(t *testing.T, broker string) {
	for name, kill := range map[string]func(*killed){
		"purged and not replied":    (*killed).beforeReply,
		"replied and not committed": (*killed).beforeCommit,
		"expired and not told":      (*killed).beforeExpired,
		"completed and not told":    (*killed).beforeCompleted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &killed{t: t, broker: broker, wire: newKafkaWire(t, broker)}
			k.prefix = strings.NewReplacer("/", "-").Replace(t.Name()) + strconv.FormatInt(time.Now().UnixNano(), 36)
			k.file = settings(t, fmt.Sprintf(killedSettings, filepath.Join(t.TempDir(), "db"),
				k.wire.addr(), k.prefix))
			k.start()
			kill(k)
		})
	}
}

const killedSettings = `docindex.kind = "disk"
docindex.path = %q
[monitor]
brokers = [%q]
prefix = %[3]q
group = %[3]q
inbound = ["%[3]s.in"]
completed_after = "1s"
`

func (k *killed) start() {
	k.t.Helper()
	k.daemon = startCommand(k.t, "urlserver", "serve", k.file)
	told := k.daemon.log.untilAll("listening for spiders", "crawl control listens on Kafka")
	k.daemon.spiders = told[0]["address"].(string)
}

// again kills the daemon when the proxy has received the request that it holds back, and starts the
// next daemon.
func (k *killed) again(begun <-chan struct{}) {
	k.t.Helper()
	select {
	case <-begun:
	case <-time.After(patience):
		k.t.Fatal("nothing is kept back")
	}
	k.daemon.signal(syscall.SIGKILL)
	k.daemon.wait()
	k.wire.open()
	k.start()
}

// feed sends requests in one batch.
func (k *killed) feed(requests ...string) {
	k.t.Helper()
	var records []*kgo.Record
	for _, text := range requests {
		records = append(records, &kgo.Record{Topic: k.prefix + ".in", Value: []byte(text)})
	}
	if err := k.client().ProduceSync(k.t.Context(), records...).FirstErr(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *killed) client(opts ...kgo.Opt) *kgo.Client {
	k.t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(k.broker), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.MetadataMaxAge(200*time.Millisecond))...)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.Close)
	return c
}

// replies reads a topic from its beginning until n replies contain text. The application's topic
// gets each reply before the firehose.
func (k *killed) replies(topic, text string, n int) (found []string) {
	k.t.Helper()
	c := k.client(kgo.ConsumeTopics(k.prefix + ".outbound_" + topic))
	timer := time.AfterFunc(patience, c.Close)
	defer timer.Stop()
	for len(found) < n {
		fetches := c.PollFetches(k.t.Context())
		if fetches.IsClientClosed() {
			k.t.Fatalf("%d replies have %s within %v; want %d", len(found), text, patience, n)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if strings.Contains(string(r.Value), text) {
				found = append(found, string(r.Value))
			}
		})
	}
	return found
}

const killedDocs = 700 // more than one batch of a purge

// crawl requests documents and waits until the daemon has them.
func (k *killed) crawl() {
	k.t.Helper()
	var all []string
	for i := range killedDocs {
		all = append(all, crawlOf("c1", fmt.Sprintf("http://127.0.0.%d/%d", 1+i%100, i), ""))
	}
	k.feed(append(all, `{"action":"info","appid":"testapp","uuid":"there","spiderid":"link"}`)...)
	k.replies("firehose", `"uuid":"there"`, 1)
}

// nothingLeft checks that nothing is pending, also after one more request for the crawl.
func (k *killed) nothingLeft() {
	k.t.Helper()
	k.feed(crawlOf("c1", "http://127.0.0.1/late", ""),
		`{"action":"info","appid":"testapp","uuid":"after","spiderid":"link","crawlid":"c1"}`)
	if got := k.replies("testapp", `"uuid":"after"`, 1)[0]; !strings.Contains(got,
		`"total_pending":0,"total_domains":0,`) {
		k.t.Errorf("info after all is %s", got)
	}
}

// purgedAll checks the replies to a stop.
func (k *killed) purgedAll(replies []string) {
	k.t.Helper()
	for _, got := range replies {
		if want := fmt.Sprintf(`{"action":"stop","total_purged":%d,"uuid":"u2",`,
			killedDocs); !strings.HasPrefix(got, want) {
			k.t.Errorf("reply is %s; want %s…", got, want)
		}
	}
}

func (k *killed) beforeReply() {
	k.crawl()
	begun := k.wire.keep(produceRequest)
	k.feed(fmt.Sprintf(testStop, "c1"))
	k.daemon.log.until("crawl purged")
	k.again(begun)
	k.purgedAll(k.replies("testapp", `"uuid":"u2"`, 1))
	k.nothingLeft()
}

func (k *killed) beforeCommit() {
	k.crawl()
	begun := k.wire.keep(commitRequest)
	k.feed(fmt.Sprintf(testStop, "c1"))
	first := k.replies("testapp", `"uuid":"u2"`, 1)
	k.again(begun)
	k.purgedAll(append(first, k.replies("testapp", `"uuid":"u2"`, 2)...))
	k.nothingLeft()
}

func (k *killed) beforeExpired() {
	k.crawl()
	begun := k.wire.keep(produceRequest)
	k.feed(crawlOf("c1", "http://127.0.0.1/last", fmt.Sprintf(`,"expires":%d`, time.Now().Unix()+1)))
	k.daemon.log.until("crawl purged")
	k.again(begun)
	got := k.replies("testapp", `"action":"expired"`, 1)[0]
	if want := fmt.Sprintf(
		`{"action":"expired","total_expired":%d,"spiderid":"link","appid":"testapp","crawlid":"c1",`,
		killedDocs+1); !strings.HasPrefix(got, want) {
		k.t.Errorf("notice is %s; want %s…", got, want)
	}
	k.nothingLeft()
}

func (k *killed) beforeCompleted() {
	begun := k.wire.keep(produceRequest)
	k.feed(crawlOf("c1", "http://127.0.0.1/", ""))
	sp := dialSpider(k.t, k.daemon.spiders)
	sp.done(sp.next()[0])
	k.again(begun)
	got := k.replies("testapp", `"action":"completed"`, 1)[0]
	if want := `{"action":"completed","total_done":1,"spiderid":"link","appid":"testapp","crawlid":"c1",`; !strings.HasPrefix(got, want) {
		k.t.Errorf("notice is %s; want %s…", got, want)
	}
}

func fakeBroker(t *testing.T) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

// kafkaScript starts and stops a real broker; it stands beside the project.
const kafkaScript = "../../../shared/servers/kafka.sh"

func realBroker(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(kafkaScript); err != nil {
		t.Skipf("no real Kafka broker: %s is missing", kafkaScript)
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no real Kafka broker: %s is missing", tool)
		}
	}
	dir, port := t.TempDir(), strconv.Itoa(freePort(t))
	do := func(args ...string) error {
		if out, err := exec.Command(kafkaScript, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w: %s", filepath.Base(kafkaScript), args, err, out)
		}
		return nil
	}
	err := do("start", dir, port)
	for range 2 { // on a busy machine the broker may not answer within the script's time
		if err == nil {
			break
		}
		time.Sleep(5 * time.Second) // until the former broker has ended
		err = do("start", dir, port)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := do("stop", dir); err != nil {
			t.Error(err)
		}
	})
	return "127.0.0.1:" + port
}

// freePort returns a port below those that systems use for outgoing connections, and not among
// those of other tests.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 8_100 + rand.IntN(1_800)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
