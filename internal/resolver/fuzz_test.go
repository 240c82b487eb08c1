package resolver

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"
)

// FuzzAnswer gives random bytes as the answer to a question. If matching is set, the ID and the
// question in it are correct. Every result must be in an answer to that question.
func FuzzAnswer(f *testing.F) {
	const name = "a.example."
	seed := func(records ...string) {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		m.Response, m.RecursionAvailable = true, true
		for _, text := range records {
			m.Answer = append(m.Answer, rr(text))
		}
		m.Ns = append(m.Ns, rr(soa))
		f.Add(packed(m), true)
		f.Add(packed(m), false)
	}
	seed()
	seed("a.example. 60 IN A 9.9.9.9")
	seed("a.example. 60 IN CNAME b.example.", "b.example. 60 IN CNAME a.example.")
	seed("b.example. 60 IN A 8.8.8.8", "a.example. 60 IN CNAME b.example.", "A.EXAMPLE. 60 CH A 9.9.9.9",
		"b.example. 60 IN AAAA 2600::1")
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, raw []byte, matching bool) {
		q, err := newQuery(name, dns.TypeA, true, testRNG(1))
		if err != nil {
			t.Fatal(err)
		}
		if matching && len(raw) >= headerLen+len(q.question) {
			copy(raw, q.wire[:2])
			raw[2] = raw[2]&^bitsOp | bitAnswer
			binary.BigEndian.PutUint16(raw[4:], 1)
			copy(raw[headerLen:], q.question)
		}
		if !q.answeredBy(raw) {
			return
		}
		if string(raw[:2]) != string(q.wire[:2]) {
			t.Fatal("another ID was taken")
		}
		var m dns.Msg
		if m.Unpack(raw) != nil {
			return
		}
		track := newTrack("a.example", dns.TypeA)
		if err := track.apply(&m); err != nil {
			if track.state != open || track.name != name || track.aliases != 0 {
				t.Fatalf("an answer of no use changed the track: %+v", track)
			}
			return
		}
		checkTrack(t, &track, raw)
	})
}

// checkTrack parses raw with another parser. Each address must belong to a name that the aliases in
// raw lead to.
func checkTrack(t *testing.T, track *track, raw []byte) {
	if (track.state == found) != (len(track.addrs) > 0) || track.ttl < 0 || track.aliases > maxAliases+1 {
		t.Fatalf("track %+v", track)
	}
	if track.state != found {
		return
	}
	if binary.BigEndian.Uint16(raw[4:]) != 1 {
		t.Fatal("an address for no question")
	}
	var m dnsmessage.Message
	if m.Unpack(raw) != nil {
		t.Skip("the parsers differ")
	}
	reached := map[string]bool{"a.example.": true}
	for range m.Answers {
		for _, r := range m.Answers {
			if c, ok := r.Body.(*dnsmessage.CNAMEResource); ok &&
				reached[strings.ToLower(r.Header.Name.String())] {
				reached[strings.ToLower(c.CNAME.String())] = true
			}
		}
	}
	legal := map[netip.Addr]bool{}
	for _, r := range m.Answers {
		if a, ok := r.Body.(*dnsmessage.AResource); ok && r.Header.Class == dnsmessage.ClassINET &&
			reached[strings.ToLower(r.Header.Name.String())] {
			legal[netip.AddrFrom4(a.A)] = true
		}
	}
	for _, a := range track.addrs {
		if !legal[a] {
			t.Fatalf("address %v, but the answer allows %v", a, legal)
		}
	}
}

// FuzzHostsFile checks that each result is a folded, legal name with addresses, and that each
// address is on a line of the file with the name.
func FuzzHostsFile(f *testing.F) {
	f.Add([]byte("127.0.0.1 localhost\n"))
	f.Add([]byte("# x\n2600::1\ta.example B.example. # y\n::ffff:9.9.9.9 a.example"))
	f.Add([]byte("9.9.9.9 a\r\n9.9.9.9\va\x00b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := strings.Split(string(text), "\n")
		for name, addrs := range parseHosts(text) {
			if checkName(name) != nil || fold(name) != name || len(addrs) == 0 {
				t.Fatalf("%q: %v", name, addrs)
			}
			for _, addr := range addrs {
				if !addr.IsValid() || addr.Zone() != "" || addr.Is4In6() {
					t.Fatalf("%q: address %v", name, addr)
				}
				if !onALine(lines, name, addr) {
					t.Fatalf("%q has %v, which no line says", name, addr)
				}
			}
		}
	})
}

func onALine(lines []string, name string, addr netip.Addr) bool {
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if a, err := netip.ParseAddr(fields[0]); err == nil && a.Unmap() == addr &&
			strings.Contains(strings.ToLower(line), name) {
			return true
		}
	}
	return false
}

// FuzzName checks that an accepted name can be sent in a query, and is the same when the query is
// parsed.
func FuzzName(f *testing.F) {
	for _, name := range []string{"a.example", "-._", "", "a..b", "1.2.3", strings.Repeat("a.", 126) + "a",
		"A.example."} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, host string) {
		name := fold(host)
		if folded, ok := appendFolded(nil, []byte(host)); ok != (len(name) <= maxName) || ok &&
			string(folded) != name {
			t.Fatalf("%q: fold %q, appendFolded %q, %v", host, name, folded, ok)
		}
		if checkName(name) != nil {
			return
		}
		q, err := newQuery(name+".", dns.TypeAAAA, true, testRNG(byte(len(name))))
		if err != nil {
			t.Fatalf("%q cannot be packed: %v", name, err)
		}
		var m dns.Msg
		if err := m.Unpack(q.wire); err != nil {
			t.Fatal(err)
		}
		if got := m.Question[0]; fold(got.Name) != name || got.Qtype != dns.TypeAAAA ||
			got.Qclass != dns.ClassINET || m.IsEdns0() == nil {
			t.Fatalf("%q was packed as %v", name, m.Question)
		}
		q.wire[2] |= bitAnswer
		if !q.answeredBy(q.wire) {
			t.Fatalf("%q: its own question does not match", name)
		}
	})
}
