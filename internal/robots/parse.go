package robots

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf16"
)

// maxBody bounds what Parse looks at, so that offsets fit 32 bits when each octet takes three.
const maxBody = 1 << 28

// Parse reads a robots.txt for one agent (RFC 9309, section 2.2) and is never an error: lines
// that mean nothing are skipped. agent may be a whole User-Agent value; its first product token
// counts, case-insensitively. Time and memory are linear in the body but for sorting the rules.
// The result does not refer to body.
func Parse(body []byte, agent string) *Rules {
	body = toUTF8(body[:min(len(body), maxBody)])
	p := parser{agent: token([]byte(agent)), body: body}
	for from, next := 0, -1; from < len(body); { // next is where the first line feed from there on is
		if next < from {
			next = indexFrom(body, from, '\n')
		}
		end := from + indexOr(body[from:next], '\r')
		p.line(from, end)
		from = end + 1
	}
	said := p.everybody
	if p.own.named {
		said = p.own
	}
	return newRules(body, said.lines, said.delay)
}

// indexOr returns where the first c is in s, or the length of s.
func indexOr(s []byte, c byte) int {
	if i := bytes.IndexByte(s, c); i >= 0 {
		return i
	}
	return len(s)
}

// indexFrom returns where the first c is in s from a place on, or the length of s.
func indexFrom(s []byte, from int, c byte) int { return from + indexOr(s[from:], c) }

// toUTF8 drops a byte order mark, and converts UTF-16, which some sites send with one.
func toUTF8(body []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return body[3:]
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		order = binary.BigEndian
	case !bytes.HasPrefix(body, []byte("\xff\xfe")):
		return body
	}
	units := make([]uint16, 0, len(body)/2)
	for body = body[2:]; len(body) >= 2; body = body[2:] {
		units = append(units, order.Uint16(body))
	}
	return []byte(string(utf16.Decode(units)))
}

// parser goes through a file once. own and everybody gather the groups that name the agent, and
// those for "*"; several of either are merged.
type parser struct {
	agent, body    []byte
	own, everybody section

	// The group at hand: whom it names, and whether a rule has ended its list of agents. Other
	// records do not end it (section 2.2.4).
	isOwn, isEverybody, closed bool
}

type section struct {
	named bool
	lines []line
	delay time.Duration
}

// line is a rule whose pattern is size bytes of the body, from off on.
type line struct {
	off, size uint32
	allow     bool
}

// line reads the line of the body from one place to another.
func (p *parser) line(from, end int) {
	key, value := record(p.body[from:end])
	switch key {
	case keyUserAgent:
		p.userAgent(value)
	case keyAllow, keyDisallow:
		p.rule(value, key == keyAllow)
	case keyCrawlDelay:
		p.crawlDelay(value)
	}
}

func (p *parser) userAgent(value []byte) {
	if p.closed {
		p.isOwn, p.isEverybody, p.closed = false, false, false
	}
	if len(value) > 0 && value[0] == '*' && (len(value) == 1 || isSpace(value[1])) {
		p.isEverybody = true
		return
	}
	if t := token(value); len(t) > 0 && bytes.EqualFold(t, p.agent) {
		p.isOwn, p.own.named = true, true
	}
}

// rule takes a pattern. One that starts with neither "/" nor "*" can match nothing, the empty one
// by section 2.2.2; both still end the list of agents.
func (p *parser) rule(pattern []byte, allow bool) {
	p.closed = true
	if len(pattern) == 0 || pattern[0] != '/' && pattern[0] != '*' {
		return
	}
	// pattern is part of body
	l := line{off: uint32(cap(p.body) - cap(pattern)), size: uint32(len(pattern)), allow: allow}
	if p.isOwn {
		p.own.lines = append(p.own.lines, l)
	}
	if p.isEverybody && !p.own.named { // else they are of no use
		p.everybody.lines = append(p.everybody.lines, l)
	}
}

// crawlDelay binds the agents that the group has named so far. Of several the longest counts.
func (p *parser) crawlDelay(value []byte) {
	delay := parseDelay(value)
	if p.isOwn {
		p.own.delay = max(p.own.delay, delay)
	}
	if p.isEverybody {
		p.everybody.delay = max(p.everybody.delay, delay)
	}
}

// parseDelay reads seconds, with a decimal point or comma; anything after them is ignored, and
// what does not begin with a number is 0. A longer delay than fits is the longest.
func parseDelay(value []byte) time.Duration {
	number := make([]byte, 0, 32)
	points := 0
	for _, c := range value {
		if c == ',' {
			c = '.'
		}
		if c == '.' {
			points++
		}
		if c != '.' && (c < '0' || c > '9') || points > 1 {
			break
		}
		number = append(number, c)
	}
	seconds, err := strconv.ParseFloat(string(number), 64) // out of range is +Inf and an error
	switch {
	case seconds >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	case err != nil:
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// token returns the product token that s begins with. Digits and dots are beyond the RFC's
// grammar, but names of agents have them: without, "MJ12bot" and "MJ13bot" were the same.
func token(s []byte) []byte {
	s = trimLeft(s)
	for i, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.':
		default:
			return s[:i]
		}
	}
	return s
}
