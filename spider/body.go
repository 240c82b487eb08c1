package spider

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

const (
	// maxBody bounds a body as sent, and again as decoded. A page of more than 10 MiB is a trap, or
	// no page.
	maxBody = 10 << 20

	// At most maxBig bodies over smallBody are read at a time. So all bodies together use at most
	// 10,000 x 64 KiB and 64 x 10 MiB (their buffers twice that), even if many hosts send endless
	// bodies.
	smallBody = 64 << 10
	maxBig    = 64
)

// cut is why a body is incomplete, in the words of WARC-Truncated; "" for a complete one.
type cut string

const (
	cutLength     cut = "length"
	cutTime       cut = "time"
	cutDisconnect cut = "disconnect"
)

// readBody reads r to its end, to maxBody, or until ctx ends. The caller calls release when it no
// longer needs the body.
func (f *fetcher) readBody(ctx context.Context, r io.Reader) (body []byte, why cut, release func()) {
	var b bytes.Buffer
	release = func() {}
	n, err := io.CopyN(&b, r, smallBody)
	if err == nil && n == smallBody {
		select {
		case f.big <- struct{}{}:
			release = func() { <-f.big }
		case <-ctx.Done():
			return b.Bytes(), cutTime, release
		}
		_, err = io.CopyN(&b, r, maxBody-smallBody)
		if err == nil {
			err = endOrMore(r)
		}
	}
	return b.Bytes(), whyCut(ctx, err), release
}

var errTooLong = errors.New("body too long")

// endOrMore returns io.EOF if r ends here, and errTooLong if it does not.
func endOrMore(r io.Reader) error {
	_, err := io.ReadFull(r, make([]byte, 1))
	if err == nil {
		return errTooLong
	}
	return err
}

func whyCut(ctx context.Context, err error) cut {
	switch {
	case err == io.EOF:
		return ""
	case errors.Is(err, errTooLong):
		return cutLength
	case ctx.Err() != nil:
		return cutTime
	}
	return cutDisconnect
}

// decode returns a reader of the body without its content coding. The decoded length is at most
// most, so that a decompression bomb ends like a long page. For a coding that was not asked for the reader
// is empty.
func decode(header http.Header, body []byte, most int64) io.Reader {
	switch coding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding"))); coding {
	case "", "identity":
		return bytes.NewReader(body)
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			return io.LimitReader(z, most)
		}
	}
	return bytes.NewReader(nil)
}
