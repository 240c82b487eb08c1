package clihelp

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Harmless is text without what a terminal obeys: control characters, C1 ones too (U+0080 to
// U+009F), but for line ends and tabs, are written as JSON does, \u001b. Bytes that are no UTF-8,
// which some terminals take for C1, become U+FFFD.
func Harmless(text string) string {
	if !strings.ContainsFunc(text, isControl) && utf8.ValidString(text) {
		return text
	}
	return string(appendHarmless(nil, text))
}

func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }

func appendHarmless(dst []byte, text string) []byte {
	for _, r := range text {
		if isControl(r) {
			dst = fmt.Appendf(dst, `\u%04x`, r)
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// Plain passes what is written to it through Harmless to W. JSON stays the same JSON. One goroutine
// at a time may use it.
type Plain struct {
	W    io.Writer
	rest []byte // the beginning of a character
	buf  []byte
}

// Write is [io.Writer].
func (p *Plain) Write(text []byte) (int, error) {
	all := append(p.rest, text...)
	whole := all[:len(all)-unfinished(all)]
	p.buf = appendHarmless(p.buf[:0], string(whole))
	p.rest = append([]byte(nil), all[len(whole):]...)
	if len(p.buf) == 0 {
		return len(text), nil
	}
	if _, err := p.W.Write(p.buf); err != nil {
		return 0, err
	}
	return len(text), nil
}

// unfinished is how many bytes at the end of text begin a character that may go on.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n:]; utf8.RuneStart(b[0]) {
			if utf8.FullRune(b) {
				return 0
			}
			return n
		}
	}
	return 0
}
