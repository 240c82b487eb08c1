package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// The layout of Pebble's log (package record of Pebble): the log consists of blocks of 32 KiB. No
// chunk crosses the end of a block. A chunk's header contains a checksum, the payload's length, the
// chunk's type and the log's number; in chunks of type 9 and above an offset follows.
const (
	logBlock     = 32 << 10
	logHeader    = 4 + 2 + 1 + 4
	logSyncExtra = 8
	logNumberAt  = 4 + 2 + 1
)

// checkNewestLog returns an error if the newest log of a database is damaged. Pebble takes a bad
// record in that log for the log's end, and would silently drop all records behind it. Pebble
// itself reports damage in all other logs.
//
// A log that ends in an incomplete record was cut by a crash, and is not damaged. A log with a bad
// record and good records of its own behind it is damaged. A reused log file has chunks of former
// logs behind its end; these have other log numbers. The check reads one log, of about 8 MB at
// most.
func checkNewestLog(path string) error {
	logs, err := logsIn(path)
	if err != nil || len(logs) == 0 {
		return err
	}
	newest := logs[len(logs)-1].path
	text, err := os.ReadFile(newest)
	if err != nil {
		return err
	}
	bad, damaged := findDamage(text, uint32(logs[len(logs)-1].number))
	if !damaged {
		return nil
	}
	return fmt.Errorf("%s is damaged: its record at byte %d cannot be read, and good ones follow, which "+
		"would be lost; put back a copy of the folder, "+
		"or give up what was put since that record with: truncate -s %d %s", newest, bad, bad, newest)
}

// checkMarker returns an error if the folder has logs or tables and no marker, which names the list of
// tables (MANIFEST). Pebble takes such a folder for a new database, and deletes the tables.
func checkMarker(path string) error {
	logs, err := logsIn(path)
	if err != nil {
		return err
	}
	tables, err := filesIn(path, "[0-9]*.sst")
	if err != nil || len(logs)+len(tables) == 0 {
		return err
	}
	markers, err := filesIn(path, "marker.manifest.*")
	if err != nil || len(markers) > 0 {
		return err
	}
	return fmt.Errorf("%s is damaged: it has %d logs and %d tables, and no file marker.manifest.*, as if "+
		"not all files had been copied; put back a whole copy, or move it away to begin with an empty index",
		path, len(logs), len(tables))
}

// walFile is a log of a database.
type walFile struct {
	path   string
	number uint64
}

// logsIn returns the logs in the folder of a database, the newest one last.
func logsIn(path string) (logs []walFile, err error) {
	files, err := filesIn(path, "*.log")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		n, err := strconv.ParseUint(strings.TrimSuffix(file, ".log"), 10, 64)
		if err == nil {
			logs = append(logs, walFile{filepath.Join(path, file), n})
		}
	}
	sort.Slice(logs, func(i, j int) bool { return logs[i].number < logs[j].number })
	return logs, nil
}

// filesIn returns the names of the files in a folder that match a pattern. There is none if there is no
// folder.
func filesIn(path, pattern string) (names []string, err error) {
	files, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, file := range files {
		if ok, _ := filepath.Match(pattern, file.Name()); ok {
			names = append(names, file.Name())
		}
	}
	return names, err
}

// findDamage reads the chunks of a log up to the first bad one. It returns the offset of the bad
// one, and whether good chunks of the same log follow it.
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

// chunkAt returns the length, header included, of the chunk at the start of text. It returns 0 if
// no valid chunk of the log is there.
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
