package grpcguard

import "encoding/binary"

// preface is what a client sends before its first HTTP/2 frame (RFC 9113 section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Frames and flags of HTTP/2 (RFC 9113 section 6).
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3

	flagEnd    = 0x1
	flagPadded = 0x8
)

// frames parses the frames that one side of an HTTP/2 connection sends, in pieces of any length.
type frames struct {
	skip   int // bytes still to come before the first frame
	header [9]byte
	n      int // bytes of the header received
	kind   byte
	flags  byte
	stream uint32
	size   int  // bytes of the frame's payload
	left   int  // bytes of the payload still to come, without padding
	first  bool // the call of do is the first one of the frame
	pad    int  // bytes of padding still to come; -1: the length byte is next
}

// follow parses p. It calls do with each part of a frame's payload, without padding. The first call
// for a frame has the bytes that come with its header; it has nil if there are none.
func (f *frames) follow(p []byte, do func(*frames, []byte)) {
	n := min(f.skip, len(p))
	f.skip -= n
	p = p[n:]
	for len(p) > 0 {
		switch {
		case f.n < len(f.header):
			p = p[f.head(p):]
			f.first = f.n == len(f.header)
			if f.first && (len(p) == 0 || f.left == 0 || f.pad != 0) {
				do(f, nil)
				f.first = false
			}
		case f.pad < 0:
			f.pad = min(int(p[0]), f.left)
			f.left -= f.pad
			p = p[1:]
		case f.left > 0:
			part := p[:min(f.left, len(p))]
			f.left -= len(part)
			p = p[len(part):]
			do(f, part)
			f.first = false
		default:
			n := min(f.pad, len(p))
			f.pad -= n
			p = p[n:]
		}
		if f.n == len(f.header) && f.left == 0 && f.pad == 0 {
			f.n = 0
		}
	}
}

// head reads bytes of a frame's header and returns how many it has read.
func (f *frames) head(p []byte) int {
	n := copy(f.header[f.n:], p)
	f.n += n
	if f.n < len(f.header) {
		return n
	}
	word := binary.BigEndian.Uint32(f.header[:4])
	f.size, f.kind = int(word>>8), f.header[3]
	f.left, f.pad = f.size, 0
	f.flags = f.header[4]
	f.stream = binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31)
	if f.kind == frameData && f.flags&flagPadded != 0 && f.size > 0 {
		f.left, f.pad = f.size-1, -1
	}
	return n
}
