package kafka_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Clients that have no library for any compression read what goes in long batches, too.
func TestRepliesAreNotCompressed(t *testing.T) {
	t.Parallel()
	b := fakeBroker(t)
	cfg := settings(t, b)
	makeTopic(t, b, 1, cfg.Inbound...)
	var requests []string
	for i := range 50 {
		requests = append(requests, info(strconv.Itoa(i)))
	}
	feed(t, b, cfg.Inbound[0], requests...)
	start(t, cfg, doer(newCrawls()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	byCodec := map[uint8]int{} // 0: none
	for r, seen := read(t, b, cfg.Prefix+".outbound_firehose"), 0; seen < len(requests); {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d replies of %d", seen, len(requests))
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			byCodec[rec.Attrs.CompressionType()]++
			seen++
		})
	}
	if byCodec[0] != len(requests) {
		t.Errorf("replies by how they are compressed: %v; want %d that are not", byCodec, len(requests))
	}
}
