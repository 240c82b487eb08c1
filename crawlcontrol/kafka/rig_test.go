package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/configs"
	"urlserver/crawlcontrol/kafka"
)

// patience ends a test that waits for what does not come; it is no measure of anything.
const patience = 5 * time.Minute

// broker is what the tests run against.
type broker struct {
	addr    string
	restart func(t testing.TB)
	fake    *kfake.Cluster // nil: a real one
}

// onBrokers runs a test over a fake broker and over a real one, where that can be had.
func onBrokers(t *testing.T, test func(t *testing.T, b *broker)) {
	t.Run("kfake", func(t *testing.T) { test(t, fakeBroker(t)) })
	t.Run("kafka", func(t *testing.T) { test(t, realBroker(t)) })
}

// fakeBroker keeps what it has over a restart. It makes no topic unasked.
func fakeBroker(t testing.TB, opts ...kfake.Opt) *broker {
	t.Helper()
	dir := t.TempDir()
	b := &broker{}
	open := func(port int) {
		var c *kfake.Cluster
		eventually(t, "the broker starts", func() (ok bool) { // somebody may have the port for a moment
			var err error
			c, err = kfake.NewCluster(append(opts, kfake.NumBrokers(1), kfake.Ports(port),
				kfake.DataDir(dir), kfake.DefaultNumPartitions(2))...)
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
		b.fake, b.addr = c, c.ListenAddrs()[0]
	}
	open(0)
	b.restart = func(t testing.TB) {
		t.Helper()
		_, port, _ := net.SplitHostPort(b.addr)
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		b.fake.Close()
		open(n)
	}
	t.Cleanup(func() { b.fake.Close() })
	return b
}

// freePort is below where systems take the ports of outgoing connections from, so that none takes
// that of a broker which is down for a while; nor is it where other tests have their servers.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(2_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// script starts and stops a real broker; it stands beside the project.
const script = "../../../shared/servers/kafka.sh"

// started is the real broker of this run of the tests.
var started struct {
	once sync.Once
	b    *broker
	dir  string
	err  error
}

func realBroker(t testing.TB) *broker {
	t.Helper()
	if _, err := os.Stat(script); err != nil {
		t.Skipf("no real Kafka broker: %s is missing", script)
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no real Kafka broker: %s is missing", tool)
		}
	}
	if testing.Short() {
		t.Skip("no real Kafka broker in short runs")
	}
	started.once.Do(func() {
		started.dir, started.err = os.MkdirTemp("", "kafka")
		port := strconv.Itoa(freePort(t))
		started.b = &broker{addr: "127.0.0.1:" + port, restart: func(t testing.TB) {
			t.Helper()
			if err := errors.Join(kafkaScript("stop", started.dir),
				startBroker(started.dir, port)); err != nil {
				t.Fatal(err)
			}
		}}
		if started.err == nil {
			started.err = startBroker(started.dir, port)
		}
	})
	if started.err != nil {
		t.Fatal(started.err)
	}
	return started.b
}

// startBroker tries anew where a machine is so busy that the broker does not answer in the script's
// time.
func startBroker(dir, port string) (err error) {
	for range 3 {
		if err = kafkaScript("start", dir, port); err == nil {
			return nil
		}
		time.Sleep(5 * time.Second) // until the one before is gone
	}
	return err
}

func kafkaScript(args ...string) error {
	out, err := exec.Command(script, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", filepath.Base(script), args, err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if started.b != nil {
		if err := errors.Join(kafkaScript("stop", started.dir), os.RemoveAll(started.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// settings are those of a test of its own topics and group.
func settings(t testing.TB, b *broker) configs.CrawlControl {
	t.Helper()
	prefix := strings.NewReplacer("/", "-", " ",
		"-").Replace(t.Name()) + strconv.FormatInt(time.Now().UnixNano(), 36)
	cfg := configs.Default().Monitor
	cfg.Brokers, cfg.Prefix, cfg.Group = []string{b.addr}, prefix, prefix
	cfg.Inbound = []string{prefix + ".inbound_actions", prefix + ".incoming"}
	return cfg
}

// running is a service at work.
type running struct {
	*kafka.Service
	stop func() // and wait
	log  *record
}

// record is a log that tests read.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func start(t testing.TB, cfg configs.CrawlControl, doer kafka.Handler) *running {
	t.Helper()
	r := &running{log: &record{}}
	s, err := kafka.New(kafka.Config{Settings: cfg, Handler: doer,
		Log: zerolog.New(r.log).Level(zerolog.InfoLevel)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r.Service = s
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("log:\n%s", r.log)
		}
	})
	return r
}

// client speaks with the broker as an application does.
func client(t testing.TB, b *broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func makeTopic(t testing.TB, b *broker, partitions int32, names ...string) {
	t.Helper()
	admin := kadm.NewClient(client(t, b))
	for _, name := range names {
		if _, err := admin.CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
			t.Fatalf("topic %s: %v", name, err)
		}
	}
}

func topicsOf(t testing.TB, b *broker) string {
	t.Helper()
	list, err := kadm.NewClient(client(t, b)).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list.Names(), " ")
}

// feed sends messages to a topic, which has to be there.
func feed(t testing.TB, b *broker, topic string, messages ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, m := range messages {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(m)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := client(t, b).ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("feed %s: %v", topic, err)
	}
}

// reader reads a topic from its beginning.
type reader struct {
	t      testing.TB
	client *kgo.Client
	topic  string
}

func read(t testing.TB, b *broker, topic string) *reader {
	return &reader{t, client(t, b, kgo.ConsumeTopics(topic), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.MetadataMaxAge(200*time.Millisecond)), topic}
}

// until reads on until enough is there.
func (r *reader) until(what string, enough func(all []string) bool) (all []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for !enough(all) {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("%s: no %s; there are %d: %.2000q", r.topic, what, len(all), all)
		}
		fetches.EachRecord(func(rec *kgo.Record) { all = append(all, string(rec.Value)) })
	}
	return all
}

func (r *reader) next(n int) []string {
	r.t.Helper()
	return r.until(fmt.Sprintf("%d records", n), func(all []string) bool { return len(all) >= n })
}

// committed is how many records of a topic the group is through with.
func committed(t testing.TB, b *broker, group, topic string) (n int64) {
	t.Helper()
	offsets, err := kadm.NewClient(client(t, b)).FetchOffsets(t.Context(), group)
	if err != nil {
		return 0
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic {
			n += o.At
		}
	})
	return n
}
