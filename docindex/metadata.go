package docindex

import (
	"encoding/json"
	"errors"
	"strconv"
)

// EncodeMetadata writes metadata as stores keep it: a JSON object with sorted keys, nothing where it is empty.
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

// DecodeMetadata reads what EncodeMetadata wrote; of anything else it reads nothing.
func DecodeMetadata(text []byte) (m map[string][]string) {
	if len(text) == 0 || json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

// PriorityOf is what metadata says of a document's priority: the first value of "priority", where it is an integer. One
// beyond 32 bits is the nearest that is not.
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
