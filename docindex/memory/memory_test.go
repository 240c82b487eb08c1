package memory_test

import (
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

func TestMemory(t *testing.T) {
	indextest.Run(t, func(*testing.T) docindex.Store { return memory.New() })
}

func TestMemoryCrawls(t *testing.T) {
	indextest.RunCrawls(t, 1, func(*testing.T) docindex.Store { return memory.New() })
}

func TestMemoryBudgets(t *testing.T) {
	indextest.RunBudgets(t, func(*testing.T) docindex.Store { return memory.New() })
}

func TestMemoryShapes(t *testing.T) {
	indextest.RunShapes(t, func(*testing.T) docindex.Store { return memory.New() })
}
