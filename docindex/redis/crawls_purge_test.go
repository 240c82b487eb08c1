package redis

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

// TestPurgeBetweenTakes has slots take another application's documents of the same queue between
// two portions of a purge.
func TestPurgeBetweenTakes(t *testing.T) {
	for _, taken := range []int{100, purgeLooks} { // in the second case, also the last one that was looked at
		t.Run(fmt.Sprint(taken), func(t *testing.T) {
			d := newDaemons(t)
			a, b := d.start(), d.start()
			var puts []docindex.Put
			for i := range purgeLooks {
				one := of("c", fmt.Sprintf("http://a.test/other%d", i), 0)
				one.Priority, one.Metadata = 9, []byte(`{"appid":["other"]}`)
				puts = append(puts, one)
			}
			for i := range 100 {
				puts = append(puts, of("c", fmt.Sprintf("http://a.test/%d", i), 0))
			}
			putOf(t, a, puts...)
			refuse(t, a, "c", docindex.Stopped)
			after(t, a, cancelScript, func([]rueidis.RedisResult) {
				var had docindex.Batch
				if err := b.Candidates(t.Context(), taken, nil, &had); err != nil || had.Len() != taken {
					t.Errorf("taken are %d, %v; want %d", had.Len(), err, taken)
				}
			})
			purge(t, a, "c", 100)
			if n := indextest.Count(t, a, nil); n.Scheduled != uint64(purgeLooks-taken) {
				t.Errorf("counts are %+v; want the other application's %d scheduled", n, purgeLooks-taken)
			}
			checkCounts(t, a)
		})
	}
}

// TestRefusalLost has one shard lose a refusal, as one does that fails over to what it had before.
func TestRefusalLost(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	name := nameOfCrawl(crawlID("c"))
	hosts := []string{"a.test", "b.test", "c.test"}
	for _, host := range hosts {
		putOf(t, a, of("c", "http://"+host+"/", 0))
	}
	refuse(t, a, "c", docindex.Stopped)
	lose := func(shard int) {
		c := reach(t, a)
		if err := c.Do(t.Context(), c.B().Hdel().Key(a.bases[shard]+":x").Field(name).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	after(t, a, rowsScript, func([]rueidis.RedisResult) { lose(shardOf(hosts[2])) })
	if _, err := a.PurgeCrawl(t.Context(), crawlID("c"), nil); !errors.Is(err, errRefusalLost) {
		t.Errorf("while it is lost: %v; want %v", err, errRefusalLost)
	}
	purge(t, a, "c", 3)
	checkCounts(t, a)
	putOf(t, a, of("d", "http://a.test/", 0))
	refuse(t, a, "d", docindex.Stopped)
	name = nameOfCrawl(crawlID("d"))
	lose(homeOf(name))
	purge(t, a, "d", 1)
	if res := putOf(t, a, of("d", "http://a.test/2", 0)); res.Dropped != 1 {
		t.Errorf("after the purge, a URL is %+v; want it dropped", res)
	}
}
