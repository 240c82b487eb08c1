package docindex

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"urlserver/internal/w3cdate"
)

// EncodeMetadata returns metadata in the form that stores keep: a JSON object with sorted keys, or
// nil if it is empty.
func EncodeMetadata(m map[string][]string) []byte {
	if len(m) == 0 {
		return nil
	}
	for key, list := range m {
		if list == nil {
			m[key] = []string{}
		}
	}
	text, _ := json.Marshal(m) // strings always can be
	return text
}

// DecodeMetadata parses the result of EncodeMetadata. It returns nil for any other text.
func DecodeMetadata(text []byte) (m map[string][]string) {
	if len(text) == 0 || json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

// Metadata by which URL Frontier clients say unique and depth.
const (
	UniqueKey = "unique"
	DepthKey  = "depth"
)

// Metadata of URLs that were found: where, and when they changed.
const (
	ViaKey     = "via"
	LastModKey = "lastmod"
)

// FoundIn returns the via and the lastmod in the metadata of a URL that was found: their first
// values. A lastmod that is no date as sitemaps have it says nothing.
func FoundIn(m map[string][]string) (via []byte, lastMod int64) {
	if text := first(m[ViaKey]); text != "" {
		via = []byte(text)
	}
	if at, ok := w3cdate.Parse(first(m[LastModKey])); ok {
		lastMod = max(0, at.Unix())
	}
	return via, lastMod
}

// IdentityIn returns the unique and the depth in metadata: their first values. A depth that is no
// number is 0, and one beyond 16 bits becomes the nearest one within.
func IdentityIn(m map[string][]string) (unique []byte, depth uint16) {
	if text := first(m[UniqueKey]); text != "" {
		unique = []byte(text)
	}
	n, err := strconv.ParseUint(first(m[DepthKey]), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		n = 0
	}
	return unique, uint16(min(n, math.MaxUint16))
}

// PriorityOf returns the priority in metadata: the first value of "priority" if it is an integer,
// else 0. A value beyond 32 bits becomes the nearest one within.
func PriorityOf(m map[string][]string) int32 {
	values := m["priority"]
	if len(values) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return int32(n)
}
