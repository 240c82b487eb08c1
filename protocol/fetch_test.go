package protocol

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
)

const longestAddr = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"

func TestFetchThereAndBack(t *testing.T) {
	largest := Trans{Slot: math.MaxUint32, Active: math.MaxUint32, Generation: math.MaxUint32}
	for _, c := range []struct {
		name             string
		trans            Trans
		docID, addr, url string
		wantAddr         string // where not addr
	}{
		{name: "IPv4", trans: trans123, docID: "17", addr: "192.0.2.1", url: "http://a.example/x?y"},
		{name: "IPv6", trans: trans123, docID: "a/b=c", addr: "2001:db8::1", url: "https://[2001:db8::1]:444/"},
		{name: "mapped", trans: trans123, docID: "1", addr: "::ffff:192.0.2.1", url: "http://a/",
			wantAddr: "192.0.2.1"},
		{name: "zone", trans: trans123, docID: "1", addr: "fe80::1%eth0", url: "http://a/", wantAddr: "fe80::1"},
		{
			name: "longest", trans: largest, docID: strings.Repeat("~", MaxDocID), addr: longestAddr,
			url: "http://a/" + strings.Repeat("x", MaxURL-len("http://a/")),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := AppendFetch(nil, c.trans, []byte(c.docID), netip.MustParseAddr(c.addr), []byte(c.url))
			if c.name == "longest" && len(line) != MaxLine {
				t.Errorf("the longest line has %d bytes; want %d", len(line), MaxLine)
			}
			if c.wantAddr == "" {
				c.wantAddr = c.addr
			}
			want := string(AppendTrans(nil, c.trans)) + " " + c.docID + " " + c.wantAddr + " " + c.url + "\n"
			if string(line) != want {
				t.Fatalf("AppendFetch = %q; want %q", line, want)
			}
			got, err := ParseFetch(line[:len(line)-1])
			if err != nil || string(got.DocID) != c.docID || got.Addr.String() != c.wantAddr ||
				string(got.URL) != c.url {
				t.Fatalf("ParseFetch(%q) = %+v, %v", line, got, err)
			}
			if trans, ok := ParseTrans(got.Trans); !ok || trans != c.trans {
				t.Errorf("TRANS_ID came back as %q", got.Trans)
			}
		})
	}
}

func TestParseFetchRefuses(t *testing.T) {
	for _, c := range []struct {
		want  error
		lines []string
	}{
		{want: ErrFetchFields, lines: []string{
			"", "1.2.3", "1.2.3 4", "1.2.3 4 192.0.2.1", "1.2.3 4 192.0.2.1 http://a/ ",
			"1.2.3 4 192.0.2.1 http://a/ b",
		}},
		{want: ErrFetchTrans, lines: []string{" 4 192.0.2.1 http://a/", "ü 4 192.0.2.1 http://a/"}},
		{want: ErrFetchDocID, lines: []string{
			"1.2.3  192.0.2.1 http://a/", "1.2.3 \x00 192.0.2.1 http://a/",
			"1.2.3 " + strings.Repeat("d", MaxDocID+1) + " 192.0.2.1 http://a/",
		}},
		{want: ErrFetchAddr, lines: []string{
			"1.2.3 4  http://a/", "1.2.3 4 192.0.2 http://a/", "1.2.3 4 192.0.2.256 http://a/",
			"1.2.3 4 192.0.2.01 http://a/",
			"1.2.3 4 192.0.2.1.1 http://a/", "1.2.3 4 [::1] http://a/", "1.2.3 4 fe80::1%eth0 http://a/",
			"1.2.3 4 a.example http://a/",
			"1.2.3 4 192.0.2.1:80 http://a/", "1.2.3 4 " + longestAddr + ":f http://a/",
		}},
		{want: ErrFetchURL, lines: []string{
			"1.2.3 4 192.0.2.1 ", "1.2.3 4 192.0.2.1 http://ü/", "1.2.3 4 192.0.2.1 http://a/\x7f",
			"1.2.3 4 192.0.2.1 http://a/\r",
			"1.2.3 4 192.0.2.1 http://a/" + strings.Repeat("x", MaxURL),
		}},
	} {
		for _, line := range c.lines {
			if got, err := ParseFetch([]byte(line)); !errors.Is(err, c.want) {
				t.Errorf("ParseFetch(%.80q) = %+v, %v; want %v", line, got, err, c.want)
			}
		}
	}
}

// TestFetchWith writes and reads lines with payloads.
func TestFetchWith(t *testing.T) {
	addr, url := netip.MustParseAddr("192.0.2.1"), []byte("http://a/")
	for _, c := range []struct{ payload, field string }{
		{"", "-"}, {"\xfb\xff", "-_8"}, {"a", "YQ"},
		{strings.Repeat("x", MaxPayload), strings.Repeat("eHh4", 2730) + "eHg"},
	} {
		line := AppendFetchWith(nil, trans123, []byte("4"), addr, url, []byte(c.payload))
		if want := "1.2.3 4 192.0.2.1 http://a/ " + c.field + "\n"; string(line) != want {
			t.Errorf("%.80q; want %.80q", line, want)
		}
		f, payload, err := ParseFetchWith(line[:len(line)-1])
		if err != nil || string(f.URL) != "http://a/" || string(payload) != c.payload {
			t.Errorf("%.80q is read as %+v, %d bytes, %v", line, f, len(payload), err)
		}
	}
	if f, payload, err := ParseFetchWith([]byte("1.2.3 4 192.0.2.1 http://a/")); err != nil || payload != nil {
		t.Errorf("a line without a payload is read as %+v, %q, %v", f, payload, err)
	}
	long := strings.Repeat("eHh4", 2731)
	for _, field := range []string{"", "=", "YQ==", "+_8", "Y", "YR", " -", "- ", "YQ\r", long} {
		if f, _, err := ParseFetchWith([]byte("1.2.3 4 192.0.2.1 http://a/ " + field)); err == nil {
			t.Errorf("a payload %.20q is read, of %+v", field, f)
		}
	}
	line := AppendFetchWith(nil, Trans{math.MaxUint32, math.MaxUint32, math.MaxUint32},
		[]byte(strings.Repeat("d", MaxDocID)), netip.MustParseAddr(longestAddr), []byte(strings.Repeat("u", MaxURL)),
		make([]byte, MaxPayload))
	s := NewScanner(strings.NewReader(string(line)))
	s.AllowLong()
	if got, err := s.Next(); err != nil || len(got)+1 != len(line) || len(line) > MaxLong {
		t.Errorf("the longest line has %d bytes, and is read as %d, %v", len(line), len(got), err)
	}
}

// The TRANS_ID is the daemon's own business: a spider takes any word for one.
func TestTransIsOpaqueToSpiders(t *testing.T) {
	got, err := ParseFetch([]byte("some/other-form 4 192.0.2.1 http://a/"))
	if err != nil || string(got.Trans) != "some/other-form" {
		t.Errorf("TRANS_ID = %q, %v; want it as it came", got.Trans, err)
	}
}

func TestValid(t *testing.T) {
	for _, c := range []struct {
		name       string
		word       string
		docID, url bool
	}{
		{name: "empty", word: ""},
		{name: "one", word: "1", docID: true, url: true},
		{name: "all there is", word: "!~", docID: true, url: true},
		{name: "longest ID", word: strings.Repeat("d", MaxDocID), docID: true, url: true},
		{name: "over the longest ID", word: strings.Repeat("d", MaxDocID+1), url: true},
		{name: "longest URL", word: strings.Repeat("u", MaxURL), url: true},
		{name: "over the longest URL", word: strings.Repeat("u", MaxURL+1)},
		{name: "space", word: "a b"},
		{name: "line feed", word: "a\n"},
		{name: "carriage return", word: "\ra"},
		{name: "NUL", word: "a\x00b"},
		{name: "delete", word: "a\x7f"},
		{name: "UTF-8", word: "ü"},
		{name: "high byte", word: "a\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if docID, url := ValidDocID([]byte(c.word)), ValidURL([]byte(c.word)); docID != c.docID || url != c.url {
				t.Errorf("%.80q: as DOC_ID %v, as URL %v; want %v, %v", c.word, docID, url, c.docID, c.url)
			}
		})
	}
}

// FuzzFetch: what is taken, written again, is the same line or means the same; what valid fields
// make is one line.
func FuzzFetch(f *testing.F) {
	f.Add([]byte("1.2.3 4 192.0.2.1 http://a.example/"), uint32(1), uint32(2), uint32(3))
	f.Add([]byte("x y ::ffff:1.2.3.4 z"), uint32(0), uint32(0), uint32(math.MaxUint32))
	f.Add([]byte("1.2.3 4 192.0.2.1 http://a.example/ aGk"), uint32(1), uint32(2), uint32(3))
	f.Add([]byte("1.2.3 4 192.0.2.1 http://a.example/ -"), uint32(1), uint32(2), uint32(3))
	f.Add([]byte("1.2.3 4 "+longestAddr+" http://a.example/"), uint32(1), uint32(2), uint32(3))
	f.Fuzz(func(t *testing.T, line []byte, slot, active, generation uint32) {
		fuzzFetchWith(t, line)
		fetch, err := ParseFetch(line)
		if err != nil {
			return
		}
		trans := Trans{Slot: slot, Active: active, Generation: generation}
		written := AppendFetch(nil, trans, fetch.DocID, fetch.Addr, fetch.URL)
		if n := strings.IndexAny(string(written), "\r\n"); n != len(written)-1 || len(written) > MaxLine {
			t.Fatalf("%q from %q is not one line", written, line)
		}
		again, err := ParseFetch(written[:len(written)-1])
		if err != nil || string(again.DocID) != string(fetch.DocID) || string(again.URL) != string(fetch.URL) ||
			again.Addr != fetch.Addr.Unmap() {
			t.Fatalf("%q written again is %q, parsed as %+v, %v", line, written, again, err)
		}
		if back, ok := ParseTrans(again.Trans); !ok || back != trans {
			t.Fatalf("%+v came back as %q", trans, again.Trans)
		}
	})
}

// fuzzFetchWith: what is taken with five fields has one writing, and with four fields it is as
// without a payload.
func fuzzFetchWith(t *testing.T, line []byte) {
	fetch, payload, err := ParseFetchWith(line)
	if plain, err2 := ParseFetch(line); err2 == nil {
		if err != nil || payload != nil || string(plain.URL) != string(fetch.URL) {
			t.Fatalf("%q is read as %+v, %q, %v; want %+v", line, fetch, payload, err, plain)
		}
		return
	}
	if err != nil {
		return
	}
	field := line[strings.LastIndexByte(string(line), ' ')+1:]
	written := AppendFetchWith(nil, trans123, fetch.DocID, fetch.Addr, fetch.URL, payload)
	if !strings.HasSuffix(string(written), " "+string(field)+"\n") || len(written) > MaxLong {
		t.Fatalf("%q has the payload %q, which is written as %q", line, payload, written)
	}
}

func BenchmarkFetch(b *testing.B) {
	url := []byte("https://www.example.com/section/article-12345/index.html?page=2&sort=asc")
	docID, addr := []byte("1234567890"), netip.MustParseAddr("192.0.2.1")
	line := AppendFetch(nil, trans123, docID, addr, url)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			line = AppendFetch(line[:0], trans123, docID, addr, url)
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseFetch(line[:len(line)-1]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
