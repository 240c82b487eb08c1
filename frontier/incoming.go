package frontier

import (
	"slices"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	pb "urlserver/api/urlfrontier"
)

// maxKept is the length of the longest message whose memory an incoming keeps.
const maxKept = 4 << 10

// incoming is the item that a stream receives. Its parts, and the memory that its strings alias, are
// used again: all of it is valid until the stream receives the next item.
type incoming struct {
	pb.URLItem
	discovered pb.URLItem_Discovered
	known      pb.URLItem_Known
	found      pb.DiscoveredURLItem
	reported   pb.KnownURLItem
	info       pb.URLInfo
	text       []byte // of messages of up to maxKept bytes
}

// read reads a message into the item. A message with neither a discovered nor a known URL becomes a
// discovered URL of no bytes, which is malformed, too.
func (in *incoming) read(message mem.BufferSlice) error {
	text := in.keep(message)
	in.info = pb.URLInfo{}
	if isKnown(text) {
		in.reported = pb.KnownURLItem{Info: &in.info}
		in.known.Known = &in.reported
		in.URLItem = pb.URLItem{Item: &in.known}
	} else {
		in.found = pb.DiscoveredURLItem{Info: &in.info}
		in.discovered.Discovered = &in.found
		in.URLItem = pb.URLItem{Item: &in.discovered}
	}
	return in.UnmarshalVTUnsafe(text)
}

// knownField is the number of URLItem's field for a known URL.
const knownField = 2

// isKnown reports whether an encoded URLItem has a known URL.
func isKnown(message []byte) bool {
	for len(message) > 0 {
		field, _, n := protowire.ConsumeField(message)
		if field == knownField {
			return true
		}
		if n < 0 {
			return false
		}
		message = message[n:]
	}
	return false
}

// keep returns a copy of a message.
func (in *incoming) keep(message mem.BufferSlice) []byte {
	n := message.Len()
	if n > maxKept {
		return message.Materialize()
	}
	in.text = slices.Grow(in.text[:0], n)[:n]
	message.CopyTo(in.text)
	return in.text
}
