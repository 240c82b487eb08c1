package frontier

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec for what is not ours
	"google.golang.org/grpc/mem"
)

// codec is protobuf by generated code for the service's own messages, and gRPC's own codec for others, such as
// those of reflection. Strings of what it reads alias one copy of the message.
type codec struct{ others encoding.CodecV2 }

func newCodec() codec { return codec{others: encoding.GetCodecV2("proto")} }

// fast is what protoc-gen-go-vtproto gives messages.
type fast interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVTUnsafe([]byte) error
	Reset()
}

// Name is [encoding.CodecV2.Name]: what is on the wire is plain protobuf.
func (codec) Name() string { return "proto" }

// Marshal is [encoding.CodecV2.Marshal].
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

// Unmarshal is [encoding.CodecV2.Unmarshal].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(fast)
	if !ok {
		return c.others.Unmarshal(data, v)
	}
	m.Reset()
	return m.UnmarshalVTUnsafe(data.Materialize())
}
