package grpcguard

import (
	"context"
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

func init() { encoding.RegisterCompressor(newBounded(encoding.GetCompressor(gzip.Name))) }

// bounded is a compressor that unpacks maxUnpacking messages at a time. Further ones wait.
type bounded struct {
	encoding.Compressor
	places chan struct{}
}

func newBounded(of encoding.Compressor) bounded {
	return bounded{of, make(chan struct{}, maxUnpacking)}
}

// Decompress is [encoding.Compressor]. gRPC closes the reader when it has the message, or as much of
// it as a message may have.
func (b bounded) Decompress(packed io.Reader) (io.Reader, error) {
	b.places <- struct{}{}
	r, err := b.Compressor.Decompress(packed)
	if err != nil {
		<-b.places
		return nil, err
	}
	return &unpacking{r, b.places}, nil
}

// unpacking is a message that is being unpacked.
type unpacking struct {
	io.Reader
	places chan struct{}
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
