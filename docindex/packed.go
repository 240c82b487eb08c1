package docindex

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Bounds of parts of a Put, in bytes.
const (
	MaxUnique  = 512
	MaxPayload = 8 << 10
)

// Packed is what a store keeps of a document beside its URL, DOC_ID, times and priority, in one
// text: metadata, unique, depth and payload. A document with metadata alone is kept as its metadata,
// and a document without any of them as nothing.
//
// Any other Packed begins with a byte of flags, which is below the space and so never begins
// metadata. It is followed by what the flags name, in their order: the depth (16 bits, big-endian),
// the lengths of unique and payload (likewise), unique, payload; and by the metadata. Scripts of
// docindex/redis read this form, too.
type Packed []byte

// Flags of a Packed. Bits 3 and 4 are free.
const (
	packedDepth   = 1 << 0
	packedUnique  = 1 << 1
	packedPayload = 1 << 2

	// MaxPacked is how much longer a Packed may be than its metadata.
	MaxPacked = 1 + 3*2 + MaxUnique + MaxPayload
)

// Pack returns the Packed of p. It may alias p.
func Pack(p *Put) Packed {
	if p.Depth == 0 && len(p.Unique)+len(p.Payload) == 0 {
		return p.Metadata
	}
	k := make(Packed, 1, MaxPacked-MaxUnique-MaxPayload+len(p.Unique)+len(p.Payload)+len(p.Metadata))
	if p.Depth > 0 {
		k[0] |= packedDepth
		k = binary.BigEndian.AppendUint16(k, p.Depth)
	}
	if len(p.Unique) > 0 {
		k[0] |= packedUnique
		k = binary.BigEndian.AppendUint16(k, uint16(len(p.Unique)))
	}
	if len(p.Payload) > 0 {
		k[0] |= packedPayload
		k = binary.BigEndian.AppendUint16(k, uint16(len(p.Payload)))
	}
	return append(append(append(k, p.Unique...), p.Payload...), p.Metadata...)
}

// IsPlain reports whether k is metadata alone, or nothing.
func (k Packed) IsPlain() bool { return len(k) == 0 || k[0] >= ' ' }

// Unpack sets metadata, unique, depth and payload of p. They alias k. It takes a damaged Packed for
// metadata.
func (k Packed) Unpack(p *Put) {
	p.Metadata, p.Unique, p.Payload, p.Depth = k, nil, nil, 0
	if k.IsPlain() {
		return
	}
	rest := k[1:]
	number := func(flag byte) int {
		if k[0]&flag == 0 || len(rest) < 2 {
			return 0
		}
		n := binary.BigEndian.Uint16(rest)
		rest = rest[2:]
		return int(n)
	}
	depth, unique, payload := number(packedDepth), number(packedUnique), number(packedPayload)
	if len(rest) < unique+payload {
		return
	}
	end := unique + payload
	p.Depth, p.Unique = uint16(depth), rest[:unique:unique]
	p.Payload, p.Metadata = rest[unique:end:end], rest[end:]
}

// Metadata returns the metadata.
func (k Packed) Metadata() []byte { return k.parts().Metadata }

// Payload returns the payload.
func (k Packed) Payload() []byte { return k.parts().Payload }

// Unique returns the text by which the document is known; nil: its URL.
func (k Packed) Unique() []byte { return k.parts().Unique }

func (k Packed) parts() (p Put) {
	k.Unpack(&p)
	return p
}

// Identity returns the owner (see [OwnerOf]) and the unique of a document, by which it is known
// within its queue beside its URL. Nil: it is known by its URL alone.
func (k Packed) Identity() []byte {
	if k.IsPlain() {
		return OwnerOf(k)
	}
	p := k.parts()
	return IdentityOf(&p)
}

// IdentityOf returns the identity of the document that p puts.
func IdentityOf(p *Put) []byte {
	if len(p.Unique) == 0 {
		return OwnerOf(p.Metadata)
	}
	return Pack(&Put{Metadata: OwnerOf(p.Metadata), Unique: p.Unique})
}

// Lasting returns the part that a store keeps of a completed document: its identity and depth.
func (k Packed) Lasting() Packed {
	if k.IsPlain() {
		return OwnerOf(k)
	}
	p := k.parts()
	return Pack(&Put{Metadata: OwnerOf(p.Metadata), Unique: p.Unique, Depth: p.Depth})
}

// Renew changes an update of the document with this Packed so that owner, unique and depth stay as
// they are. The payload stays unless the update has one.
func (k Packed) Renew(update *Put) {
	was := k.parts()
	update.Metadata = WithOwner(update.Metadata, OwnerOf(was.Metadata))
	update.Unique, update.Depth = was.Unique, was.Depth
	if len(update.Payload) == 0 {
		update.Payload = was.Payload
	}
}

// DecodePayload decodes a payload in base64: of either alphabet, padded or not.
func DecodePayload(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	code := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		code = base64.RawURLEncoding
	}
	payload, err := code.AppendDecode(nil, bytes.TrimRight(text, "="))
	if err != nil {
		return nil, fmt.Errorf("payload is not base64: %w", err)
	}
	return payload, nil
}

// Deeper returns the depth of the links of a document of a depth.
func Deeper(depth uint16) uint16 { return uint16(min(uint32(depth)+1, math.MaxUint16)) }

func (put *Put) checkPacked() error {
	switch {
	case len(put.Unique) > MaxUnique:
		return fmt.Errorf("unique has %d bytes, %w: %d are taken", len(put.Unique), ErrTooLong, MaxUnique)
	case !utf8.Valid(put.Unique):
		return errors.New("unique is not valid UTF-8")
	case len(put.Payload) > MaxPayload:
		return fmt.Errorf("payload has %d bytes, %w: %d are taken", len(put.Payload), ErrTooLong, MaxPayload)
	}
	return nil
}
