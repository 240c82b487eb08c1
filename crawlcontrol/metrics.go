package crawlcontrol

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// maxLabels limits the crawls that the metrics name. The others are counted together.
const maxLabels = 64

// countTime is how long a scrape waits for the store.
const countTime = 10 * time.Second

// other is the crawlid label of the crawls that are counted together.
const other = "(other)"

var (
	documentsDesc = prometheus.NewDesc("urlserver_crawl_documents",
		"Documents of crawls by state: pending (at a line spider, too), in_transit (at clients of the "+
			"URL Frontier), done, purged (their crawl was stopped), expired, dropped (came after "+
			"either). Of at most 64 crawls, the rest together.",
		[]string{"spiderid", "appid", "crawlid", "state"}, nil)
	sentDesc = prometheus.NewDesc("urlserver_crawl_sent_total",
		"How often documents of crawls went to clients of the URL Frontier, and to line spiders; to "+
			"these it counts once they have ended. Of at most 64 crawls, the rest together.",
		[]string{"spiderid", "appid", "crawlid"}, nil)
	messagesDesc = prometheus.NewDesc("urlserver_monitor_messages_total",
		"Requests of crawl control by what they were.", []string{"what"}, nil)
)

// KafkaCounts are the numbers of crawl control over Kafka since its start, and its lag.
type KafkaCounts struct {
	Connected bool   // whether a broker is connected
	Requests  uint64 // handled and answered
	Replies   uint64 // acknowledged, on the firehose and on applications' own topics
	GivenUp   uint64 // replies that went to the firehose only
	Errors    uint64 // of Kafka and of the store; all are retried
	Lag       int64  // records that are not handled yet, as far as known
}

// Metrics collects the metrics of a Handler and of the crawls in its store.
type Metrics struct {
	Handler *Handler
	Store   Store
}

// Describe implements prometheus.Collector.
func (m Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- documentsDesc
	out <- sentDesc
	out <- messagesDesc
}

// label makes a name fit for a label: a name that is not UTF-8 is quoted as in Go.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.Quote(name)
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTime)
	defer cancel()
	counts, err := m.Store.CrawlCounts(ctx, maxLabels)
	if err == nil { // a store that does not answer has no figures
		counts[len(counts)-1].Crawl = other
	}
	for _, c := range counts {
		c.Spider, c.App, c.Crawl = label(c.Spider), label(c.App), label(c.Crawl)
		out <- prometheus.MustNewConstMetric(sentDesc, prometheus.CounterValue, float64(c.Sent), c.Spider,
			c.App, c.Crawl)
		send := func(state string, n uint64) {
			out <- prometheus.MustNewConstMetric(documentsDesc, prometheus.GaugeValue, float64(n), c.Spider,
				c.App, c.Crawl, state)
		}
		send("pending", c.Pending)
		send("in_transit", c.InTransit)
		send("done", c.Done)
		send("purged", c.Purged-c.Expired)
		send("expired", c.Expired)
		send("dropped", c.Dropped)
	}
	f := m.Handler.Counts()
	send := func(what string, n uint64) {
		out <- prometheus.MustNewConstMetric(messagesDesc, prometheus.CounterValue, float64(n), what)
	}
	send("crawl", f.Crawl)
	send("info", f.Info)
	send("stop", f.Stop)
	send("refused", f.Refused)
	send("dropped", f.Dropped)
}
