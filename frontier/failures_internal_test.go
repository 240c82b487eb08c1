package frontier

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// fullStore takes no URL.
type fullStore struct{ Store }

func (fullStore) Put(context.Context, *docindex.Puts) (docindex.PutResult, error) {
	return docindex.PutResult{}, errors.New("no room")
}

// An index that takes no URL is logged once a second, whatever number of batches it refuses.
func TestFailuresAreLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Server{store: fullStore{}}
		for range 100 {
			s.storeBatch(t.Context(), &batch{}, zerolog.New(&out))
			time.Sleep(20 * time.Millisecond)
		}
		if text := out.String(); strings.Count(text, "no room") != 2 || !strings.Contains(text, `"not_shown":49`) {
			t.Errorf("two seconds of failures are logged as\n%s; want two lines, and how many are not shown", text)
		}
	})
}
