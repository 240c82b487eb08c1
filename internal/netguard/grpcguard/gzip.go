package grpcguard

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
)

// maxUnpacking bounds how many packed messages are unpacked at a time in the process. A packed
// message of some KiB can have the largest size unpacked, and gRPC unpacks it in the call's
// goroutine: without the bound each open stream could hold as much. One message is unpacked without
// a wait for its sender.
const maxUnpacking = 4

// A packed message may unpack to freeLength bytes plus maxRatio times its packed length. A call holds
// messages after they are unpacked, so what a client makes the process hold is in proportion to what
// it has sent. A long list of numbered URLs unpacks to 18 times its length; gzip can do 1032 times.
const (
	freeLength = 64 << 10
	maxRatio   = 32
)

var errRatio = errors.New("the message unpacks to more than 64 KiB plus 32 times its packed length; " +
	"send it without compression")

func init() { encoding.RegisterCompressor(newBounded(encoding.GetCompressor(gzip.Name))) }

// bounded is a compressor that unpacks maxUnpacking messages at a time, none of them further than
// maxRatio allows. Further messages wait.
type bounded struct {
	encoding.Compressor
	places chan struct{}
}

func newBounded(of encoding.Compressor) bounded {
	return bounded{of, make(chan struct{}, maxUnpacking)}
}

// Decompress is [encoding.Compressor]. gRPC closes the reader when it has the message, or as much of
// it as a message may have. Its reader of the packed message knows the length; one that does not
// counts as empty.
func (b bounded) Decompress(packed io.Reader) (io.Reader, error) {
	left := freeLength
	if l, ok := packed.(interface{ Remaining() int }); ok {
		left += maxRatio * l.Remaining()
	}
	b.places <- struct{}{}
	r, err := b.Compressor.Decompress(packed)
	if err != nil {
		<-b.places
		return nil, err
	}
	return &unpacking{r, left, b.places}, nil
}

// unpacking is a message that is being unpacked.
type unpacking struct {
	io.Reader
	left   int // bytes that it may still unpack to
	places chan struct{}
}

// Read is [io.Reader].
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if u.left -= n; u.left < 0 {
		return n, errRatio
	}
	return n, err
}

// Close is [io.Closer].
func (u *unpacking) Close() error {
	defer func() { <-u.places }()
	if c, ok := u.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// plainAnswers returns options with which answers are not packed. Without them gRPC packs the
// answers to a client that packs its calls, each message by itself: most have less than 100 bytes,
// and a writer for gzip takes 800 KB of memory.
func plainAnswers() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo,
			call grpc.UnaryHandler) (any, error) {
			answerPlain(ctx)
			return call(ctx, in)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
			call grpc.StreamHandler) error {
			answerPlain(stream.Context())
			return call(server, stream)
		}),
	}
}

// answerPlain makes the answer to a call plain. A plain one stays as it is, to the byte.
func answerPlain(ctx context.Context) {
	if s, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ SendCompress() string }); ok &&
		s.SendCompress() != "" {
		_ = grpc.SetSendCompressor(ctx, encoding.Identity) // it fails only if the call has ended
	}
}
