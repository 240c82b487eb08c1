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
	// maxBody bounds a body as sent, and again as decoded: a page of 10 MiB is a trap or no page.
	maxBody = 10 << 20

	// Bodies over smallBody take one of maxBig places, so that all bodies together stay within
	// 10,000 x 64 KiB and 64 x 10 MiB (their buffers within twice that), however many hosts send
	// endless ones.
	smallBody = 64 << 10
	maxBig    = 64
)

// cut is why a body is not whole, in the words of WARC-Truncated; "" for one that is.
type cut string

const (
	cutLength     cut = "length"
	cutTime       cut = "time"
	cutDisconnect cut = "disconnect"
)

// readBody reads r to its end, to maxBody or to the end of ctx. release gives back the body's
// place; call it when the bytes are no longer needed.
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

// endOrMore tells with io.EOF that r ends here, with errTooLong that it does not.
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

// decode undoes the content coding of body; what it yields is bounded, so a bomb ends like a long
// page. It yields nothing for codings that were not asked for.
func decode(header http.Header, body []byte) io.Reader {
	switch coding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding"))); coding {
	case "", "identity":
		return bytes.NewReader(body)
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			return io.LimitReader(z, maxBody)
		}
	}
	return bytes.NewReader(nil)
}
