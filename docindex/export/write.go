package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"urlserver/docindex"
)

// Write writes the content of a store: settings, URLs by crawl and queue, and the end. A URL or
// setting that changes meanwhile is written as it was before or after the change.
func Write(ctx context.Context, store Source, to io.Writer) error {
	w := writer{out: bufio.NewWriterSize(to, 64<<10)}
	err := store.Settings(ctx, func(s *docindex.Setting) bool {
		return w.write(appendSetting(w.line[:0], s))
	})
	if err == nil {
		err = w.crawlSettings(ctx, store)
	}
	var crawls []string
	if err == nil {
		crawls, err = store.Crawls(ctx)
	}
	slices.Sort(crawls)
	for _, crawl := range crawls {
		if err == nil && w.err == nil {
			err = store.List(ctx, docindex.Scope{Crawl: []byte(crawl)}, func(d *docindex.Document) bool {
				w.urls++
				return w.write(appendDocument(w.line[:0], d))
			})
		}
	}
	if err != nil {
		w.flush()
		return fmt.Errorf("list the store: %w", err)
	}
	w.write(appendEnd(w.line[:0], w.urls))
	w.flush()
	return w.err
}

// writer keeps the first error of its destination.
type writer struct {
	out  *bufio.Writer
	line []byte
	urls uint64
	err  error
}

// crawlSettings writes the settings of crawls, by their IDs.
func (w *writer) crawlSettings(ctx context.Context, store Source) error {
	texts := map[string]string{}
	_, err := store.CrawlSettings(ctx, 0, func(crawl string, text []byte) { texts[crawl] = string(text) })
	for _, crawl := range slices.Sorted(maps.Keys(texts)) {
		w.write(appendCrawlSettings(w.line[:0], crawl, []byte(texts[crawl])))
	}
	return err
}

func (w *writer) write(line []byte) (ok bool) {
	w.line = line
	if w.err == nil {
		_, w.err = w.out.Write(line)
	}
	return w.err == nil
}

func (w *writer) flush() {
	if w.err == nil {
		w.err = w.out.Flush()
	}
}
