package kafka

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestWarningsThatRepeat: while a broker is away the client warns of it all the time. The log has one line
// a minute for each broker.
func TestWarningsThatRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		l := logger{zerolog.New(&text), &warnings{}}
		for range 600 {
			l.Log(kgo.LogLevelWarn, "unable to open connection to broker", "broker", "1", "err", time.Now())
			l.Log(kgo.LogLevelWarn, "unable to open connection to broker", "broker", "2", "err", time.Now())
			time.Sleep(time.Second)
		}
		for _, broker := range []string{`"broker":"1"`, `"broker":"2"`} {
			if n := strings.Count(text.String(), broker); n != 10 {
				t.Errorf("%s is in %d lines of ten minutes; want 10", broker, n)
			}
		}
	})
}
