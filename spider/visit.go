package spider

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// result is the result of a document as reported to the daemon.
type result struct {
	status     int // 0: no answer, or a success with an incomplete body
	retryAfter int // seconds, or protocol.NoRetryAfter
	details    protocol.Details
}

// visit fetches a document. It returns after the archive has the record and the index has the
// links. It tries both until they succeed, so a failure there delays fetches and loses no pages.
// The error is ctx's; the document then gets no status.
func (s *Spider) visit(ctx context.Context, f protocol.Fetch, arrived time.Time, links *puts,
	watch *stallWatch) (result, error) {
	u, err := weburl.Parse(f.URL)
	if err != nil { // the daemon sends no such URL
		s.cfg.Log.Warn().Err(err).Bytes("doc_id", f.DocID).Msg("cannot be fetched")
		s.count.failed.Add(1)
		return result{retryAfter: protocol.NoRetryAfter}, nil
	}
	a, err := s.fetcher.get(s.spacing.during(ctx, f.Addr, arrived, watch), u, f.Addr)
	defer a.free()
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	s.tally(a, err, u)
	if err != nil {
		return result{retryAfter: protocol.NoRetryAfter}, nil
	}
	if err := s.keep(ctx, a); err != nil {
		return result{}, err
	}
	if err := s.putLinks(ctx, a, f.DocID, links); err != nil {
		return result{}, err
	}
	r := result{status: a.report(), retryAfter: retryAfter(a.header.Get("Retry-After"), a.at)}
	if s.bodies != nil && r.status/100 == 2 {
		r.details = s.bodies.note(u.Text(), a.body)
	}
	return r, nil
}

// tally counts an answer, or why there is none.
func (s *Spider) tally(a answer, err error, u weburl.URL) {
	s.count.bytes.Add(int64(len(a.body)))
	if err != nil || a.report() == 0 {
		s.count.failed.Add(1)
		s.cfg.Log.Debug().Err(err).Bytes("url", u.Text()).Str("cut", string(a.cut)).Msg("no whole answer")
		return
	}
	s.count.fetched.Add(1)
}

// keep writes the answer to the archive, if there is one. It tries until it succeeds.
func (s *Spider) keep(ctx context.Context, a answer) error {
	if s.archive == nil {
		return nil
	}
	records, err := s.record(ctx, a)
	if err != nil {
		return err
	}
	for wait := (backoff{}); ; wait.sleep(ctx) {
		err := s.archive.write(ctx, records)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.count.archiveErrors.Add(1)
		s.cfg.Log.Error().Err(err).Msg("cannot write the archive; trying again")
	}
}

// record encodes the answer for the archive while it holds a place in parsing.
func (s *Spider) record(ctx context.Context, a answer) ([]byte, error) {
	select {
	case s.parsing <- struct{}{}:
		defer func() { <-s.parsing }()
		return exchange(a), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// putLinks finds the answer's links and returns when the index has them.
func (s *Spider) putLinks(ctx context.Context, a answer, docID []byte, links *puts) error {
	var found linkSet
	select {
	case s.parsing <- struct{}{}:
		found = linksOf(a, productToken(s.cfg.UserAgent))
		<-s.parsing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.nesting.limit(a.url.Text(), &found)
	if found.fault != nil {
		s.cfg.Log.Info().Err(found.fault).Bytes("url", a.url.Text()).Int("links", len(found.urls)).
			Msg("a sitemap is not read to its end")
	}
	s.count.links.Add(int64(len(found.urls)))
	switch {
	case s.cfg.Index == onConnection:
		return links.put(ctx, found.objects(docID))
	case s.index == nil:
		return nil
	}
	return s.index.put(ctx, found.objects(docID))
}

// report returns the status for the daemon: 0 if the body of a success is incomplete, since it is
// not the document. Other statuses are reported even then, since they say how the host wants to be
// treated.
func (a answer) report() int {
	if a.status/100 == 2 && (a.cut == cutTime || a.cut == cutDisconnect) {
		return 0
	}
	return a.status
}

// retryAfter returns a Retry-After (RFC 9110, section 10.2.3), seconds or a date, as seconds from
// now.
func retryAfter(value string, now time.Time) int {
	value = strings.TrimSpace(value)
	if value == "" {
		return protocol.NoRetryAfter
	}
	if strings.Trim(value, "0123456789") == "" {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil { // only if it is out of range
			return protocol.MaxRetryAfter
		}
		return int(min(n, protocol.MaxRetryAfter))
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return protocol.NoRetryAfter
	}
	// a date has whole seconds: round up
	return int(min(max(date.Unix()-now.Unix(), 0), protocol.MaxRetryAfter))
}

// productToken returns the name in a User-Agent value: "bot" of "bot/1.0 (+http://...)".
func productToken(userAgent string) string {
	if i := strings.IndexAny(userAgent, "/ ("); i >= 0 {
		return userAgent[:i]
	}
	return userAgent
}
