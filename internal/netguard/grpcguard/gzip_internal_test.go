package grpcguard

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
)

// TestUnpackingIsBounded: of many packed messages that arrive at once, maxUnpacking are unpacked at a
// time. The next one begins when gRPC closes one, and one that is no gzip takes no place.
func TestUnpackingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounded(encoding.GetCompressor(gzip.Name).(bounded).Compressor)
		var packed bytes.Buffer
		w, err := b.Compress(&packed)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "text")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 * maxUnpacking {
			if _, err := b.Decompress(strings.NewReader("no gzip at all")); err == nil {
				t.Fatal("what is no gzip was unpacked")
			}
		}
		const messages = 5 * maxUnpacking
		open := make(chan io.Reader, messages)
		for range messages {
			go func() {
				r, err := b.Decompress(bytes.NewReader(packed.Bytes()))
				if err != nil {
					t.Error(err)
				}
				open <- r
			}()
		}
		for ended := range messages {
			synctest.Wait()
			if got, want := len(open), min(maxUnpacking, messages-ended); got != want {
				t.Fatalf("%d messages are being unpacked after %d; want %d", got, ended, want)
			}
			r := <-open
			if text, err := io.ReadAll(r); err != nil || string(text) != "text" {
				t.Errorf("unpacked %q, %v", text, err)
			}
			if err := r.(io.Closer).Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
