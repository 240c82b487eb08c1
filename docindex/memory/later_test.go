package memory_test

import (
	"testing"

	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

func TestDueLater(t *testing.T) { indextest.DueLater(t, memory.New()) }
