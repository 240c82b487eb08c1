package docindex_test

import (
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

func TestMemory(t *testing.T) {
	indextest.Run(t, func(*testing.T) docindex.Store { return docindex.NewMemory() })
}

func TestMemoryCrawls(t *testing.T) {
	indextest.RunCrawls(t, func(*testing.T) indextest.CrawlStore { return docindex.NewMemory() })
}
