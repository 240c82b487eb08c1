package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

// receiveInto decodes messages as one stream receives them, and adds them to b.
func receiveInto(t testing.TB, b *batch, messages ...[]byte) {
	var in incoming
	codec := newCodec()
	for _, message := range messages {
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, &in); err != nil {
			t.Fatal(err)
		}
		b.add(in.ID, read(&in.URLItem))
	}
}

func encoded(t testing.TB, item *pb.URLItem) []byte {
	t.Helper()
	text, err := proto.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// An idle stream does not keep the memory of long IDs.
func TestLongIDsAreReleased(t *testing.T) {
	b := new(batch)
	b.keep(strings.Repeat("x", maxKeptIDs+1))
	if b.reset(); cap(b.ids) > maxKeptIDs {
		t.Errorf("%d bytes are kept; want at most %d", cap(b.ids), maxKeptIDs)
	}
}

// The items of a batch share no memory with the messages that come after them.
func TestItemsKeepTheirText(t *testing.T) {
	var messages [][]byte
	const items = 40
	for i := range items {
		info := &pb.URLInfo{Url: fmt.Sprintf("http://h%d.test/%d", i, i), Metadata: map[string]*pb.StringList{
			"status": {Values: []string{"429"}}, "n": {Values: []string{fmt.Sprint(i)}},
		}}
		one := &pb.URLItem{ID: fmt.Sprintf("id%d", i)}
		if i%7 == 6 { // longer than what is kept
			info.Metadata["long"] = &pb.StringList{Values: []string{strings.Repeat("x", maxKept)}}
		}
		one.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: 5}}
		if i%3 == 0 {
			one.Item = &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}
		}
		messages = append(messages, encoded(t, one))
	}
	messages = append(messages, encoded(t, &pb.URLItem{ID: "none"}),
		encoded(t, &pb.URLItem{ID: "later", Item: &pb.URLItem_Discovered{
			Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: "http://later.test/"}}}}))
	b := new(batch)
	receiveInto(t, b, messages...)
	for i := range items {
		put, host := b.puts.At(i)
		url := fmt.Sprintf("http://h%d.test/%d", i, i)
		if string(put.URL) != url || string(host) != fmt.Sprintf("h%d.test", i) || put.Update != (i%3 != 0) {
			t.Errorf("item %d: %s on %s, update: %t; want %s", i, put.URL, host, put.Update, url)
		}
		if n := docindex.DecodeMetadata(put.Metadata)["n"]; len(n) != 1 || n[0] != fmt.Sprint(i) {
			t.Errorf("item %d: its metadata say n = %q", i, n)
		}
		if want := fmt.Sprintf("id%d", i); b.acks[i].ID != want {
			t.Errorf("item %d: its answer has the ID %q; want %q", i, b.acks[i].ID, want)
		}
	}
	for n, i := 0, 0; i < items; i++ {
		if i%3 == 0 {
			continue
		}
		if want := fmt.Sprintf("h%d.test", i); string(b.answers[n].Host) != want {
			t.Errorf("answer %d is of %q; want %s", n, b.answers[n].Host, want)
		}
		n++
	}
	last, _ := b.puts.At(items)
	if b.malformed != 1 || string(last.URL) != "http://later.test/" || len(last.Metadata) > 0 || last.Update {
		t.Errorf("%d items are malformed, want the one without content; the last is %+v", b.malformed, last)
	}
}

// Receiving URLs of either kind and adding them to a batch allocates nothing once the memory for a batch
// is there.
func TestReceiveAllocatesNothing(t *testing.T) {
	info := &pb.URLInfo{Url: "http://www.example.test/some/page.html", Key: "www.example.test"}
	var messages []mem.BufferSlice
	for _, item := range []*pb.URLItem{
		{ID: "17", Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}},
		{ID: "18", Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: 5}}},
	} {
		messages = append(messages, mem.BufferSlice{mem.SliceBuffer(encoded(t, item))})
	}
	var in incoming
	codec, b := newCodec(), new(batch)
	one := func() {
		for _, message := range messages {
			if err := codec.Unmarshal(message, &in); err != nil {
				t.Fatal(err)
			}
			b.add(in.ID, read(&in.URLItem))
		}
	}
	for range maxBatch {
		one()
	}
	b.reset()
	if n := testing.AllocsPerRun(maxBatch/2, one); n != 0 {
		t.Errorf("%v allocations for two URLs; want none", n)
	}
}

// A message with URLs of both kinds has the later one, as protobuf says.
func TestLaterKindCounts(t *testing.T) {
	discovered := encoded(t, &pb.URLItem{Item: &pb.URLItem_Discovered{
		Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: "http://a.test/found"}}}})
	known := encoded(t, &pb.URLItem{Item: &pb.URLItem_Known{
		Known: &pb.KnownURLItem{Info: &pb.URLInfo{Url: "http://a.test/known"}}}})
	b := new(batch)
	receiveInto(t, b, slices.Concat(discovered, known), slices.Concat(known, discovered))
	for i, want := range []string{"http://a.test/known", "http://a.test/found"} {
		if put, _ := b.puts.At(i); string(put.URL) != want || put.Update != (i == 0) {
			t.Errorf("message %d: %s, update: %t; want %s", i, put.URL, put.Update, want)
		}
	}
}
