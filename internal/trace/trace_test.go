package trace

import (
	"math"
	"strconv"
	"testing"
)

// The share of sampled IDs is the one asked for, within 5 sigma.
func TestShare(t *testing.T) {
	const ids = 200_000
	for _, prefix := range []string{"", "doc-", "0000000000000000"} {
		for _, part := range []float64{0, 0.001, 0.01, 0.5, 0.999, 1} {
			share, n := RatioOf(part), 0
			for i := range ids {
				if share.Samples(strconv.AppendInt([]byte(prefix), int64(i), 10)) {
					n++
				}
			}
			want, off := part*ids, 5*math.Sqrt(ids*part*(1-part))
			if math.Abs(float64(n)-want) > off {
				t.Errorf("IDs %s0 and on: %d of %d are sampled; want %.0f, give or take %.0f", prefix, n,
					ids, want, off)
			}
		}
	}
}

// A document that a smaller ratio samples is also sampled by a larger one.
func TestSharesNest(t *testing.T) {
	for i := range 10_000 {
		id := strconv.AppendInt(nil, int64(i), 10)
		if RatioOf(0.01).Samples(id) && !RatioOf(0.02).Samples(id) {
			t.Errorf("%s is among 1 in 100 and not among 2", id)
		}
	}
}

func TestStepsAreBounded(t *testing.T) {
	var j Trace
	for range MaxSpans + 3 {
		j.Add(Span{Phase: Slot})
	}
	j.Add(Span{Phase: Delivery})
	if len(j.Spans) != MaxSpans+1 || j.Dropped != 3 || j.Spans[MaxSpans].Phase != Delivery {
		t.Errorf("%d steps, %d left out; want %d, delivery the last, and 3", len(j.Spans),
			j.Dropped, MaxSpans+1)
	}
}

func BenchmarkSamples(b *testing.B) {
	id, share := []byte("1234567890"), RatioOf(0.001)
	for b.Loop() {
		if share.Samples(id) {
			b.Fatal("this one is sampled")
		}
	}
}
