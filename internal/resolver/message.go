package resolver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/miekg/dns"
)

const (
	headerLen = 12
	ednsSize  = 1232 // bytes that pass unfragmented, as DNS flag day 2020 advises
	bitAnswer = 0x80 // QR, in byte 2 of the header
	bitsOp    = 0x78 // Opcode
	bitCut    = 0x02 // TC
)

// query is a query with one question, as it was sent.
type query struct {
	wire     []byte
	question []byte // the part of wire that an answer must repeat, byte by byte
	edns     bool
}

// newQuery packs a question for name, which ends in a dot. The ID and the case of each letter come
// from rng, so only an attacker who sees the query can forge an answer
// (draft-vixie-dnsext-dns0x20).
func newQuery(name string, qtype uint16, edns bool, rng *rand.ChaCha8) (query, error) {
	noise := rng.Uint64()
	m := dns.Msg{MsgHdr: dns.MsgHdr{Id: uint16(noise), RecursionDesired: true}}
	m.Question = []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}}
	if edns {
		m.SetEdns0(ednsSize, false)
	}
	wire, err := m.Pack()
	if err != nil {
		return query{}, fmt.Errorf("%w: %q: %w", ErrBadName, name, err)
	}
	q := query{wire: wire, edns: edns}
	n := len(name) + 1 // on the wire a name is a byte longer
	if name == "." {
		n = 1
	}
	q.question = wire[headerLen : headerLen+n+4] // including type and class
	mixCase(q.question[:len(name)], rng)
	return q, nil
}

// mixCase gives each letter of a name on the wire a random case. Length bytes are at most 63 and so
// are not letters.
func mixCase(name []byte, rng *rand.ChaCha8) {
	var bits uint64
	for i, c := range name {
		if i%64 == 0 {
			bits = rng.Uint64()
		}
		if 'a' <= lower(c) && lower(c) <= 'z' {
			name[i] = c ^ byte(bits&1)<<5
		}
		bits >>= 1
	}
}

// answeredBy reports whether raw is an answer to q: it has the same ID and exactly the same
// question. A server that did not understand the query may omit the question (RFC 1035, section
// 4.1.1).
func (q query) answeredBy(raw []byte) bool {
	if len(raw) < headerLen || !bytes.Equal(raw[:2], q.wire[:2]) || raw[2]&(bitAnswer|bitsOp) != bitAnswer {
		return false
	}
	switch binary.BigEndian.Uint16(raw[4:]) {
	case 0:
		rcode := int(raw[3] & 0x0f)
		return rcode == dns.RcodeFormatError || rcode == dns.RcodeNotImplemented
	case 1:
		return bytes.HasPrefix(raw[headerLen:], q.question)
	}
	return false
}

// cut reports whether an answer is truncated (bit TC).
func cut(raw []byte) bool { return raw[2]&bitCut != 0 }

// refusesEDNS reports whether rcode may mean that the server does not know EDNS (RFC 6891, section
// 7).
func refusesEDNS(rcode int) bool {
	return rcode == dns.RcodeFormatError || rcode == dns.RcodeNotImplemented || rcode == dns.RcodeBadVers
}
