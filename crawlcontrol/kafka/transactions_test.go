package kafka_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What a producer takes back before it is committed is not done; what comes after it is.
func TestAbortedRequests(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *broker) {
		cfg := settings(t, b)
		makeTopic(t, b, 1, cfg.Inbound[0])
		c := newCrawls()
		service := start(t, cfg, doer(c))
		producer := client(t, b, kgo.TransactionalID(cfg.Prefix))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, one := range []struct {
			message string
			end     kgo.TransactionEndTry
		}{{stop("taken back", "c1"), kgo.TryAbort}, {info("committed"), kgo.TryCommit}} {
			if err := producer.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := producer.ProduceSync(ctx,
				&kgo.Record{Topic: cfg.Inbound[0], Value: []byte(one.message)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := producer.EndTransaction(ctx, one.end); err != nil {
				t.Fatal(err)
			}
		}
		if n := uuids(read(t, b, cfg.Prefix+".outbound_firehose").next(1)); n["committed"] != 1 {
			t.Errorf("answered are %v; want what was committed", n)
		}
		if n := c.begun.Load(); n != 0 {
			t.Errorf("%d stops were begun; want none", n)
		}
		eventually(t, "no record is waiting", func() bool { return service.Counts().Lag == 0 })
		eventually(t, "both requests and both ends are committed",
			func() bool { return committed(t, b, cfg.Group, cfg.Inbound[0]) == 4 })
		if n := service.Counts().Requests; n != 1 {
			t.Errorf("%d requests are counted; want 1", n)
		}
	})
}
