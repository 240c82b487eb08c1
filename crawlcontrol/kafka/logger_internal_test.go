package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
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

// TestWarningsOfAnotherReason: a warning is logged again within the minute if Kafka gives another reason.
// The texts of other errors differ each time, and do not count.
func TestWarningsOfAnotherReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		l := logger{zerolog.New(&text), &warnings{}}
		for i := range 30 {
			for _, err := range []error{
				kerr.GroupAuthorizationFailed, fmt.Errorf("joining: %w", kerr.CoordinatorNotAvailable),
				fmt.Errorf("read from port %d: reset", i), errors.New("closed"),
			} {
				l.Log(kgo.LogLevelWarn, "join group failed", "group", "g", "err", err)
			}
			time.Sleep(time.Second)
		}
		for reason, want := range map[string]int{"GROUP_AUTHORIZATION_FAILED": 1, "COORDINATOR_NOT_AVAILABLE": 1,
			"read from port": 1, "closed": 0} {
			if n := strings.Count(text.String(), reason); n != want {
				t.Errorf("%s is in %d lines of half a minute; want %d", reason, n, want)
			}
		}
	})
}
