package redis

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

func TestPlaces(t *testing.T) {
	indextest.Places(t, func(t *testing.T) (a, b docindex.PageCounter, pass func(time.Duration)) {
		d := newDaemons(t)
		return d.start(), d.start(), d.pass
	})
}
