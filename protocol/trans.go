package protocol

import (
	"bytes"
	"math"
	"strconv"
)

// Trans is the content of a TRANS_ID: the host slot of a document, its place in the active range,
// and the generation of that place. The daemon finds it with two array look-ups. The generation
// distinguishes a late answer from a live one.
type Trans struct {
	Slot, Active, Generation uint32
}

// AppendTrans appends the TRANS_ID of t: three decimal numbers with dots between.
func AppendTrans(dst []byte, t Trans) []byte {
	dst = strconv.AppendUint(dst, uint64(t.Slot), 10)
	dst = append(dst, '.')
	dst = strconv.AppendUint(dst, uint64(t.Active), 10)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, uint64(t.Generation), 10)
}

// ParseTrans accepts only what AppendTrans writes: no signs, no leading zeros, no number over 32
// bits.
func ParseTrans(id []byte) (t Trans, ok bool) {
	slot, rest, ok1 := cut(id, '.')
	active, generation, ok2 := cut(rest, '.')
	if !ok1 || !ok2 {
		return Trans{}, false
	}
	var okSlot, okActive, okGeneration bool
	t.Slot, okSlot = parseUint32(slot)
	t.Active, okActive = parseUint32(active)
	t.Generation, okGeneration = parseUint32(generation)
	if !okSlot || !okActive || !okGeneration {
		return Trans{}, false
	}
	return t, true
}

func parseUint32(s []byte) (uint32, bool) {
	n, ok := parseDigits(s, math.MaxUint32+1)
	if !ok || n > math.MaxUint32 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	return uint32(n), true
}

// parseDigits parses a decimal number of any length, and reduces it to most. most times ten fits an
// int.
func parseDigits(s []byte, most int) (n int, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), most)
	}
	return n, len(s) > 0
}

// cut is bytes.Cut for one byte.
func cut(s []byte, sep byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, nil, false
}
