package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Pebble's log (its package record): blocks of 32 KiB with chunks that do not cross their ends. A
// chunk's header has a checksum, the payload's length, the chunk's type and the number of its log;
// from type 9 on an offset follows.
const (
	logBlock     = 32 << 10
	logHeader    = 4 + 2 + 1 + 4
	logSyncExtra = 8
	logNumberAt  = 4 + 2 + 1
)

// checkNewestLog finds damage in the newest log of a database, which Pebble takes for the log's
// end: whatever was written behind it would be missing without a word. A log that ends in a record
// that is not whole was cut by a crash, and is well. One that has good records of its own behind a
// bad one is damaged. A log file that is used again has chunks of former logs behind its end, which
// have other numbers. All other logs Pebble reads strictly itself. It costs reading one log, some 8
// MB at most.
func checkNewestLog(path string) error {
	files, err := filepath.Glob(filepath.Join(path, "*.log"))
	if err != nil {
		return err
	}
	newest, number := "", uint64(0)
	for _, file := range files {
		n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(file), ".log"), 10, 64)
		if err == nil && n >= number {
			newest, number = file, n
		}
	}
	if newest == "" {
		return nil
	}
	text, err := os.ReadFile(newest)
	if err != nil {
		return err
	}
	bad, damaged := findDamage(text, uint32(number))
	if !damaged {
		return nil
	}
	return fmt.Errorf("%s is damaged: its record at byte %d cannot be read, and good ones follow, which would be lost; put back a copy of the folder, "+
		"or give up what was put since that record with: truncate -s %d %s", newest, bad, bad, newest)
}

// findDamage walks a log's chunks to the first that is none, and tells whether there are chunks of
// the log behind it.
func findDamage(text []byte, log uint32) (bad int, damaged bool) {
	at := 0
	for at < len(text) {
		end := min(at-at%logBlock+logBlock, len(text))
		if n := chunkAt(text[at:end], log); n > 0 {
			at += n
		} else if rest := text[at:end]; len(rest) < logHeader+logSyncExtra && len(bytes.Trim(rest, "\x00")) == 0 {
			at = end
		} else {
			break
		}
	}
	number := binary.LittleEndian.AppendUint32(nil, log)
	for from := at + 1 + logNumberAt; from < len(text); from++ {
		i := bytes.Index(text[from:], number)
		if i < 0 {
			break
		}
		from += i
		chunk := from - logNumberAt
		if end := min(chunk-chunk%logBlock+logBlock, len(text)); chunkAt(text[chunk:end], log) > 0 {
			return at, true
		}
	}
	return at, false
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkAt is the length of the chunk of a log that text begins with, header and payload; 0: there
// is none.
func chunkAt(text []byte, log uint32) int {
	if len(text) < logHeader || binary.LittleEndian.Uint32(text[logNumberAt:]) != log {
		return 0
	}
	n := logHeader + int(binary.LittleEndian.Uint16(text[4:]))
	switch kind := text[6]; {
	case kind >= 9 && kind <= 12:
		n += logSyncExtra
	case kind < 5 || kind > 12:
		return 0
	}
	if n > len(text) {
		return 0
	}
	sum := crc32.Checksum(text[6:n], castagnoli)
	if sum = (sum>>15 | sum<<17) + 0xa282ead8; sum != binary.LittleEndian.Uint32(text) {
		return 0
	}
	return n
}
