package docindex_test

import (
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) docindex.Store { return docindex.NewMemory() })
}

func TestMemoryCrawls(t *testing.T) {
	storetest.RunCrawls(t, func(*testing.T) storetest.CrawlStore { return docindex.NewMemory() })
}
