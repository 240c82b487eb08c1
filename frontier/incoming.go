package frontier

import (
	"slices"

	"google.golang.org/grpc/mem"

	pb "urlserver/api/urlfrontier"
)

// maxKept is the length of the longest message whose memory an incoming keeps.
const maxKept = 4 << 10

// incoming is the item that a stream receives. Its parts, and the memory that its strings alias, are
// used again: all of it is valid until the stream receives the next item.
type incoming struct {
	pb.URLItem
	item  pb.URLItem_Discovered
	found pb.DiscoveredURLItem
	info  pb.URLInfo
	text  []byte // of messages of up to maxKept bytes
}

// Reset empties the item, so that a message can be read into it. Without a message it is a discovered
// URL of no bytes, which is as malformed as an item that is neither discovered nor known.
func (in *incoming) Reset() {
	in.info = pb.URLInfo{}
	in.found = pb.DiscoveredURLItem{Info: &in.info}
	in.item.Discovered = &in.found
	in.URLItem = pb.URLItem{Item: &in.item}
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
