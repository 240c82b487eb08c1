package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// TestFinishedAnswerLost has a crawl finish whose end Redis has noted, and of which nobody heard.
func TestFinishedAnswerLost(t *testing.T) {
	for what, script := range map[string]*script{"see": seeScript, "settle": settleScript} {
		t.Run(what, func(t *testing.T) {
			d := newDaemons(t)
			a := d.start()
			putOf(t, a, of("c", "http://a.test/", 0))
			end(t, a, take(t, a))
			d.pass(time.Second)
			after(t, a, script, func(answers []rueidis.RedisResult) {
				for i := range answers {
					answers[i] = rueidis.NewErrorResult(errors.New("the connection has ended"))
				}
			})
			var listed []string
			for range 3 {
				done, _ := a.FinishedCrawls(t.Context(), time.UnixMicro(d.now.Load()), 10)
				for _, one := range done {
					listed = append(listed, one.Crawl)
				}
			}
			want(t, "finished", listed, "c")
		})
	}
}
