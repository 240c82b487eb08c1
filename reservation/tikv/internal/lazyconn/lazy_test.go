package lazyconn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type fake struct{ closed int }

func (f *fake) Close() error {
	f.closed++
	return nil
}

func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away, dials, made := errors.New("away"), 0, &fake{}
		c := Client[*fake]{Dial: func() (*fake, error) {
			if dials++; dials < 3 {
				return nil, away
			}
			return made, nil
		}}
		wants := func(err error, after int) {
			t.Helper()
			if _, got := c.Get(); !errors.Is(got, err) || dials != after {
				t.Errorf("Get = %v after %d dials; want %v after %d", got, dials, err, after)
			}
		}
		wants(away, 1)
		wants(away, 1)
		time.Sleep(retryDial)
		wants(away, 2)
		time.Sleep(retryDial)
		wants(nil, 3)
		wants(nil, 3)
		c.Close()
		c.Close()
		wants(errClosed, 3)
		if made.closed != 1 {
			t.Errorf("closed %d times, want once", made.closed)
		}
	})
}
