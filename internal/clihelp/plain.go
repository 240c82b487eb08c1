package clihelp

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Harmless returns text without characters that a terminal obeys. Control characters, including C1
// (U+0080 to U+009F) but not line ends and tabs, are escaped as in JSON: \u001b. Bytes that are not
// UTF-8, which some terminals take for C1, become U+FFFD.
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

// Plain writes text to W through Harmless. JSON stays the same JSON. One goroutine at a time may
// use it.
type Plain struct {
	W      io.Writer
	rest   []byte // the beginning of an incomplete character
	buf    []byte
	failed error // see Failed
}

// Failed returns the first error of W, nil if there was none. A command whose output is lost has failed,
// although it did what it should.
func (p *Plain) Failed() error { return p.failed }

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
		p.failed = cmp.Or(p.failed, err)
		return 0, err
	}
	return len(text), nil
}

// unfinished returns the number of bytes at the end of text that may be the beginning of a
// character.
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
