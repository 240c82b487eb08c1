package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"urlserver/docindex"
	"urlserver/docindex/internal/ndjson"
)

const (
	maxPuts   = 1000    // URLs stored at once
	maxBytes  = 1 << 20 // of their lines, roughly
	maxErrors = 10      // invalid lines that a Result names
)

// Result counts the lines by what became of them.
type Result struct {
	New        int      `json:"new"`
	Known      int      `json:"known"`      // stored before; unchanged
	Renumbered int      `json:"renumbered"` // of the new ones: got another DOC_ID, since theirs was taken
	Settings   int      `json:"settings"`
	Invalid    int      `json:"invalid"`
	Dropped    int      `json:"dropped,omitempty"` // not stored: of a crawl that was stopped or has expired
	Errors     []string `json:"errors"`            // the first invalid lines
}

// Read stores the URLs and settings of a dump. It counts and names invalid lines, and stores the
// others. An error is of the body or of the store. The lines before it are stored, and the Result
// counts them.
func Read(ctx context.Context, store Target, body io.Reader) (Result, error) {
	r := reader{store: store, res: Result{Errors: []string{}}}
	r.puts.Kept = true
	in := ndjson.NewReader(body, maxLine)
	for {
		line, err := in.Next()
		switch {
		case err == io.EOF:
			return r.res, r.flush(ctx)
		case errors.Is(err, ndjson.ErrTooLong):
			r.invalid(in.Number(), fmt.Errorf("longer than %d bytes", maxLine))
		case err != nil:
			return r.res, errors.Join(r.flush(ctx), &BrokenError{Line: in.Number(), Err: err})
		default:
			r.add(ctx, in.Number(), line)
		}
		if r.puts.Len() == maxPuts || r.bytes > maxBytes {
			if err := r.flush(ctx); err != nil {
				return r.res, err
			}
		}
	}
}

// BrokenError says that a body broke off.
type BrokenError struct {
	Line int // the last line that was read
	Err  error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("body broke off after line %d: %v", e.Line, e.Err)
}

// Unwrap is for package errors.
func (e *BrokenError) Unwrap() error { return e.Err }

// reader stores lines in batches.
type reader struct {
	store  Target
	puts   docindex.Puts
	number []int // line numbers of puts
	bytes  int   // of these lines
	res    Result
}

func (r *reader) add(ctx context.Context, number int, line []byte) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, byteOrderMark))
	if len(line) == 0 {
		return
	}
	e, err := parse(line)
	switch {
	case err == nil && e.setting != nil:
		if err = r.store.Set(ctx, *e.setting); err == nil {
			r.res.Settings++
		}
	case err == nil && len(e.settings) > 0:
		if err = r.store.SetCrawlSettings(ctx, e.crawl, e.settings); err == nil {
			r.res.Settings++
		}
	case err == nil && len(e.put.URL) > 0:
		if err = r.puts.AddExact(e.put, docindex.HostOf(e.put.URL)); err == nil {
			r.number = append(r.number, number)
			r.bytes += len(line)
		}
	}
	if err != nil {
		r.invalid(number, err)
	}
}

// byteOrderMark is what some editors put before the first line.
var byteOrderMark = []byte("\ufeff")

func (r *reader) invalid(number int, err error) {
	r.res.Invalid++
	if len(r.res.Errors) < maxErrors {
		r.res.Errors = append(r.res.Errors, fmt.Sprintf("line %d: %v", number, err))
	}
}

// flush stores the lines that were collected. A URL whose DOC_ID is a number that another URL has
// gets another DOC_ID.
func (r *reader) flush(ctx context.Context) error {
	res, err := r.store.Put(ctx, &r.puts)
	r.res.New += res.New
	r.res.Known += res.Known
	r.res.Dropped += res.Dropped
	if err == nil {
		err = r.renumber(ctx, res.Refused)
	}
	r.puts.Reset()
	r.number, r.bytes = r.number[:0], 0
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// renumber puts refused URLs again without their DOC_IDs, if those are numbers as stores give them,
// or of a form that only this store may give.
func (r *reader) renumber(ctx context.Context, refused []docindex.Refusal) error {
	again := docindex.Puts{Kept: true}
	var number []int
	for _, one := range refused {
		put, host := r.puts.At(one.Index)
		if !isNumber(put.DocID) && !errors.Is(one.Err, docindex.ErrReserved) {
			r.invalid(r.number[one.Index], one.Err)
			continue
		}
		put.DocID = nil
		if err := again.AddExact(put, host); err != nil {
			r.invalid(r.number[one.Index], err)
			continue
		}
		number = append(number, r.number[one.Index])
	}
	if again.Len() == 0 {
		return nil
	}
	res, err := r.store.Put(ctx, &again)
	r.res.New += res.New
	r.res.Renumbered += res.New
	r.res.Known += res.Known
	r.res.Dropped += res.Dropped
	for _, one := range res.Refused {
		r.invalid(number[one.Index], one.Err)
	}
	return err
}

func isNumber(id []byte) bool {
	for _, c := range id {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(id) > 0
}
