package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	pb "urlserver/api/urlfrontier"
)

// oracle checks what clients see against what was promised, by nothing but the interface.
type oracle struct {
	t       *testing.T
	mu      sync.Mutex
	perKey  map[string]int      // URLs in transit
	served  map[string][]period // calls that had some of a queue
	transit map[string]bool     // URLs
	done    map[string]bool
}

// period is from before a call to after its answer: a queue was served somewhere in it.
type period struct{ began, ended time.Time }

// apart reports whether two servings may have been the delay apart.
func (p period) apart(q period) bool {
	return p.ended.Sub(q.began) >= oracleDelay || q.ended.Sub(p.began) >= oracleDelay
}

const (
	oracleDelay = time.Second
	oracleMax   = 2
)

// take notes an answer.
func (o *oracle) take(began time.Time, infos []*pb.URLInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := map[string]bool{}
	for _, info := range infos {
		if o.transit[info.Url] || o.done[info.Url] {
			o.t.Errorf("%s is given out though it is in transit (%v) or completed (%v)", info.Url,
				o.transit[info.Url], o.done[info.Url])
		}
		o.transit[info.Url] = true
		if o.perKey[info.Key]++; o.perKey[info.Key] > oracleMax {
			o.t.Errorf("%s has %d URLs in transit", info.Key, o.perKey[info.Key])
		}
		keys[info.Key] = true
	}
	now := period{began, time.Now()}
	for key := range keys {
		for _, other := range o.served[key] {
			if !now.apart(other) {
				o.t.Errorf("%s is served in %v and in %v; the delay is %v", key, now, other, oracleDelay)
			}
		}
		o.served[key] = append(o.served[key], now)
	}
}

// release notes that a URL is about to be reported.
func (o *oracle) release(info *pb.URLInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.transit, info.Url)
	o.done[info.Url] = true
	o.perKey[info.Key]--
}

func (o *oracle) completed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.done)
}

// TestPolite has 64 clients put, get and report at once.
func TestPolite(t *testing.T) {
	r := newRig(t, nil)
	o := &oracle{t: t, perKey: map[string]int{}, served: map[string][]period{}, transit: map[string]bool{},
		done: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for n := range 64 {
		clients.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(n), 1))
			for ctx.Err() == nil {
				if err := o.client(ctx, r, rnd); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(4 * time.Second)
	for o.completed() < 100 && !t.Failed() { // fewer prove little
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	clients.Wait()
	r.agrees()
}

// agrees sees that the two ways to count come to one sum. Calls that were cut off may
// still be at work when their clients have gone, so it looks until they agree.
func (r *rig) agrees() {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stats := must[*pb.Stats](r.t)(r.GetStats(r.t.Context(), &pb.QueueWithinCrawlParams{}))
		total := must[*pb.Long](r.t)(r.CountURLs(r.t.Context(), &pb.CountUrlParams{}))
		if total.Value == stats.Size+stats.Counts["completed"] {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the stats are %v, the count of all URLs is %d", stats, total.Value)
		}
	}
}

// client is one round of a crawler: put some, get some, report what it got.
func (o *oracle) client(ctx context.Context, r *rig, rnd *rand.Rand) error {
	stream, err := r.PutURLs(ctx)
	if err != nil {
		return err
	}
	for range 20 {
		if err := stream.Send(discovered(fmt.Sprintf("http://h%d.test/%d", rnd.IntN(300),
			rnd.IntN(1000)))); err != nil {
			return err
		}
	}
	began := time.Now()
	get, err := r.GetURLs(ctx, &pb.GetParams{MaxUrlsPerQueue: oracleMax, MaxQueues: uint32(rnd.IntN(5)),
		DelayRequestable: 3600})
	if err != nil {
		return err
	}
	var infos []*pb.URLInfo
	for {
		info, err := get.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		infos = append(infos, info)
	}
	o.take(began, infos)
	for _, info := range infos {
		o.release(info)
		if err := stream.Send(known(info.Url, 0)); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
