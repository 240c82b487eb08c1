package export

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the memory that unpacking zstd may take: the default of zstd's command line.
const maxWindow = 128 << 20

// packing is a way to pack: the first bytes of a packed file, and the ending of its name.
type packing struct {
	name, ending string
	magic        []byte
	open         func(io.Reader) (io.ReadCloser, error)
}

var packings = []packing{
	{name: "zstd", ending: ".zst", magic: []byte{0x28, 0xB5, 0x2F, 0xFD}, open: openZstd},
	{name: "gzip", ending: ".gz", magic: []byte{0x1F, 0x8B}, open: openGzip},
}

// Unpack returns the content of r without the zstd or gzip that it begins with. An r without either
// is an error if its name says otherwise.
func Unpack(r io.Reader, name string) (io.ReadCloser, error) {
	in := bufio.NewReader(r)
	start, _ := in.Peek(4) // a read error comes back later
	for _, p := range packings {
		switch {
		case bytes.HasPrefix(start, p.magic):
			return p.open(in)
		case strings.HasSuffix(strings.ToLower(name), p.ending):
			return nil, fmt.Errorf("%s is not %s, though its name ends in %s", name, p.name, p.ending)
		}
	}
	return io.NopCloser(in), nil
}

func openZstd(r io.Reader) (io.ReadCloser, error) {
	in, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return in.IOReadCloser(), nil
}

func openGzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }
