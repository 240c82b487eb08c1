package robots

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf16"
)

// maxBody bounds the part of a file that Parse reads. Offsets then fit in 32 bits even if each
// octet takes three.
const maxBody = 1 << 28

// Parse reads a robots.txt for one agent (RFC 9309, section 2.2). It never fails: it skips lines
// without meaning. agent may be a whole User-Agent value; only its first product token counts, in
// any case. Time and memory are linear in the body, except for sorting the rules. The result does
// not refer to body.
func Parse(body []byte, agent string) *Rules {
	body = toUTF8(body[:min(len(body), maxBody)])
	p := parser{agent: token([]byte(agent)), body: body}
	for from, next := 0, -1; from < len(body); { // next is the index of the first line feed from there on
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
	rules := newRules(body, said.lines, said.delay)
	rules.sitemaps = p.sitemaps.urls
	return rules
}

// indexOr returns the index of the first c in s, or the length of s.
func indexOr(s []byte, c byte) int {
	if i := bytes.IndexByte(s, c); i >= 0 {
		return i
	}
	return len(s)
}

// indexFrom returns the index of the first c in s at or after from, or the length of s.
func indexFrom(s []byte, from int, c byte) int { return from + indexOr(s[from:], c) }

// toUTF8 removes a byte order mark, and converts UTF-16 that begins with one.
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

// parser reads a file once. own and everybody collect the groups that name the agent and the groups
// for "*". Several groups of a kind are merged.
type parser struct {
	agent, body    []byte
	own, everybody section
	sitemaps       sitemaps

	// The present group: which agents it names, and whether a rule has ended its list of agents.
	// Other records do not end the list (section 2.2.4).
	isOwn, isEverybody, closed bool
}

type section struct {
	named bool
	lines []line
	delay time.Duration
}

// line is a rule. Its pattern is size bytes of the body, at off.
type line struct {
	off, size uint32
	allow     bool
}

// line parses the line of the body between two indexes.
func (p *parser) line(from, end int) {
	key, value := record(p.body[from:end])
	switch key {
	case keyUserAgent:
		p.userAgent(value)
	case keyAllow, keyDisallow:
		p.rule(value, key == keyAllow)
	case keyCrawlDelay:
		p.crawlDelay(value)
	case keySitemap:
		p.sitemaps.add(value)
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

// rule adds a rule. A pattern that starts with neither "/" nor "*" matches nothing, an empty one by
// section 2.2.2. Such a rule still ends the list of agents.
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
	if p.isEverybody && !p.own.named { // else the rules for everybody are not needed
		p.everybody.lines = append(p.everybody.lines, l)
	}
}

// crawlDelay sets the Crawl-delay of the agents that the group has named so far. The longest of
// several counts.
func (p *parser) crawlDelay(value []byte) {
	delay := parseDelay(value)
	if p.isOwn {
		p.own.delay = max(p.own.delay, delay)
	}
	if p.isEverybody {
		p.everybody.delay = max(p.everybody.delay, delay)
	}
}

// parseDelay reads a number of seconds, with a decimal point or comma, and ignores the rest. Text
// without a number is 0. A number that is too large becomes the longest Duration.
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
	seconds, err := strconv.ParseFloat(string(number), 64) // an out-of-range number is +Inf with an error
	switch {
	case seconds >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	case err != nil:
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// token returns the product token that s begins with. The RFC's grammar has no digits and dots, but
// names of agents have them: without digits, "MJ12bot" and "MJ13bot" would be equal.
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
