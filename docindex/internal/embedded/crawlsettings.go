package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"urlserver/docindex"
)

// crawlSettings has the settings of crawls by crawl ID. The zero value is ready.
type crawlSettings struct {
	texts   map[string][]byte
	changes uint64
}

// CheckCrawlSettingsLocked returns an error if there is no room for the settings of one more crawl.
func (b *Base) CheckCrawlSettingsLocked(crawl string, text []byte) error {
	if _, known := b.settings.texts[crawl]; !known && len(text) > 0 &&
		len(b.settings.texts) >= docindex.MaxCrawlSettings {
		return docindex.ErrTooManyCrawls
	}
	return nil
}

// SetCrawlSettingsLocked sets the settings of a crawl, and its weight as they name it. It copies
// text.
func (b *Base) SetCrawlSettingsLocked(crawl string, text []byte) {
	b.settings.changes++
	b.setWeightLocked(crawl, text)
	if len(text) == 0 {
		delete(b.settings.texts, crawl)
		return
	}
	if b.settings.texts == nil {
		b.settings.texts = map[string][]byte{}
	}
	b.settings.texts[crawl] = bytes.Clone(text)
}

// setWeightLocked gives a crawl the weight that its settings name.
func (b *Base) setWeightLocked(crawl string, text []byte) {
	if crawl == docindex.DefaultCrawl {
		crawl = ""
	}
	b.Sched.SetWeight(crawl, WeightOf(text))
}

const leastWeight = 0.001 // as docindex/scoped has it; older stores may have less

// WeightOf returns the weight that settings of a crawl name; 1: they name none, or cannot be read.
func WeightOf(text []byte) float64 {
	var settings struct{ Weight float64 }
	if json.Unmarshal(text, &settings) != nil || settings.Weight <= 0 {
		return 1
	}
	return max(settings.Weight, leastWeight)
}

// CrawlSettings is [docindex.CrawlKeeper.CrawlSettings].
func (c Contract) CrawlSettings(
	_ context.Context, since uint64, visit func(crawl string, text []byte),
) (version uint64, err error) {
	c.b.Mu.Lock()
	if err := c.b.Body.UsableLocked(); err != nil {
		c.b.Mu.Unlock()
		return 0, err
	}
	version = c.b.settings.changes + 1
	var all map[string][]byte
	if version != since {
		all = maps.Clone(c.b.settings.texts)
	}
	c.b.Mu.Unlock()
	for crawl, text := range all { // texts are replaced, never changed
		visit(crawl, text)
	}
	return version, nil
}
