package frontier

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec for other messages
	"google.golang.org/grpc/mem"
)

// codec uses generated code for the service's own messages, and gRPC's codec for others, such as
// those of reflection. Strings of a decoded message alias one copy of the input. An incoming reuses
// the memory of that copy.
type codec struct{ others encoding.CodecV2 }

func newCodec() codec { return codec{others: encoding.GetCodecV2("proto")} }

// fast is implemented by messages that protoc-gen-go-vtproto generates.
type fast interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVTUnsafe([]byte) error
	Reset()
}

// Name implements [encoding.CodecV2]. The wire format is plain protobuf.
func (codec) Name() string { return "proto" }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(fast)
	if !ok {
		return c.others.Marshal(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		buf := make([]byte, size)
		_, err := m.MarshalToSizedBufferVT(buf)
		return mem.BufferSlice{mem.SliceBuffer(buf)}, err
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(size)
	if _, err := m.MarshalToSizedBufferVT((*buf)[:size]); err != nil {
		pool.Put(buf)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if in, ok := v.(*incoming); ok {
		return in.read(data)
	}
	m, ok := v.(fast)
	if !ok {
		return c.others.Unmarshal(data, v)
	}
	m.Reset()
	return m.UnmarshalVTUnsafe(data.Materialize())
}
