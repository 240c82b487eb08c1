package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition is read no further while many records wait, also when they are small or have no value, and is
// read again when they are handled.
func TestSmallRecordsWait(t *testing.T) {
	consumer, err := kgo.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Close)
	for name, of := range map[string]struct {
		record kgo.Record
		n      int
	}{
		"no value":     {kgo.Record{}, 10_000},
		"a long key":   {kgo.Record{Key: make([]byte, 1<<20)}, 2},
		"a header":     {kgo.Record{Headers: []kgo.RecordHeader{{Value: make([]byte, 1<<20)}}}, 2},
		"a long value": {kgo.Record{Value: make([]byte, 1<<20)}, 2},
	} {
		w := waiting{s: &Service{lag: lag{parts: map[part]span{}}}, consumer: consumer}
		var l *line
		for i := range of.n {
			r := of.record
			r.Topic, r.Offset = name, int64(i)
			l = w.add([]*kgo.Record{&r})[0]
		}
		if paused := consumer.PauseFetchPartitions(nil)[name]; !l.paused || len(paused) != 1 {
			t.Errorf("%s: %d records wait, and the partition is read on: %v", name, of.n, paused)
		}
		w.drop(l, of.n)
		if paused := consumer.PauseFetchPartitions(nil)[name]; l.paused || len(paused) != 0 || l.size != 0 {
			t.Errorf("%s: nothing waits, and the partition is not read: %v", name, paused)
		}
	}
}
