package grpcguard

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"
)

// frame returns an HTTP/2 frame. pad: padding; -1: it has none.
func frame(kind, flags byte, stream uint32, payload []byte, pad int) []byte {
	if pad >= 0 {
		flags |= flagPadded
		payload = append(append([]byte{byte(pad)}, payload...), make([]byte, pad)...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	f = binary.BigEndian.AppendUint32(append(f, flags), stream)
	return append(f, payload...)
}

// someFrames returns frames of two streams: messages that end with their frame, that go on in the
// next one, and that share one with others.
func someFrames(rng *rand.Rand) (all []byte) {
	all = append(all, preface...)
	var waiting [2][]byte // bytes of messages that are in no frame yet
	for i := range waiting {
		all = append(all, frame(frameHeaders, 0, uint32(2*i+1), []byte("headers"), -1)...)
	}
	for range 40 {
		i := rng.IntN(len(waiting))
		for len(waiting[i]) == 0 || rng.IntN(3) == 0 {
			n := rng.IntN(30)
			message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), make([]byte, n)...)
			waiting[i] = append(waiting[i], message...)
		}
		n := len(waiting[i])
		if rng.IntN(2) == 0 {
			n = rng.IntN(n + 1)
		}
		pad := -1
		if rng.IntN(4) == 0 {
			pad = rng.IntN(5)
		}
		all = append(all, frame(frameData, 0, uint32(2*i+1), waiting[i][:n], pad)...)
		waiting[i] = waiting[i][n:]
		if rng.IntN(5) == 0 {
			all = append(all, frame(0x6, 0, 0, []byte("a ping.."), -1)...)
		}
	}
	if rng.IntN(2) == 0 {
		all = append(all, frame(frameReset, 0, 1, make([]byte, 4), -1)...)
	}
	return all
}

// A meter counts the same, however the bytes of a connection are cut. It counts nothing where all
// messages are finished.
func TestMeterInAnyPieces(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		sent := someFrames(rng)
		far, near := net.Pipe()
		defer far.Close()
		defer near.Close()
		whole, single := newMeter(1<<20, false), newMeter(1<<20, false)
		pieces, bytes := whole.follow(near), single.follow(near)
		for len(sent) > 0 {
			n := 1 + rng.IntN(len(sent))
			if rng.IntN(2) == 0 {
				n = min(n, 40)
			}
			pieces.in.follow(sent[:n], pieces.received)
			for _, b := range sent[:n] {
				bytes.in.follow([]byte{b}, bytes.received)
			}
			sent = sent[n:]
			if a, b := pieces.unread.Load(), bytes.unread.Load(); a != b || a != whole.unread.Load() {
				t.Fatalf("seed %d, %d bytes before the end: %d bytes of unfinished messages where a piece comes "+
					"at once, %d where it comes byte by byte, %d of the meter", seed, len(sent), a, b,
					whole.unread.Load())
			}
		}
	}
}

// A frame of whole messages counts for nothing at its end, also behind one of padding alone.
func TestMeterForgetsPadding(t *testing.T) {
	far, near := net.Pipe()
	defer far.Close()
	defer near.Close()
	c := newMeter(1<<20, false).follow(near)
	c.in.skip = 0
	c.in.follow(frame(frameHeaders, 0, 1, nil, -1), c.received)
	c.in.follow(frame(frameData, 0, 1, nil, 3), c.received)
	message := []byte{0, 0, 0, 0, 2, 'x', 'y'}
	c.in.follow(frame(frameData, 0, 1, message, -1), c.received)
	if n := c.unread.Load(); n != 0 {
		t.Errorf("%d bytes count; want none", n)
	}
	c.in.follow(frame(frameData, 0, 1, message[:6], -1), c.received)
	if n := c.unread.Load(); n != frameCost+6 {
		t.Errorf("%d bytes of an unfinished message count; want %d", n, frameCost+6)
	}
}
