package scoped

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

func TestPlaces(t *testing.T) {
	indextest.Places(t, func(*testing.T) (a, b docindex.PageCounter, pass func(time.Duration)) {
		one := newPlaces()
		return one, one, nil
	})
}
