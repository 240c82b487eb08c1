package robots

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// parseTests has files of robots.txt, and which targets they allow and forbid.
var parseTests = []struct {
	name      string
	file      string
	agent     string // "": foobot
	allowed   string // targets, separated by spaces
	forbidden string
}{
	{name: "version in the file", file: "User-agent: foobot/1.2\nDisallow: /x", forbidden: "/x",
		allowed: "/y"},
	{name: "words in the file", file: "User-agent: foobot the great\nDisallow: /x", forbidden: "/x"},
	{name: "star glued to a name in the file", file: "User-agent: foobot*\nDisallow: /x",
		forbidden: "/x"},
	{name: "names with digits are whole", file: "User-agent: MJ12bot\nDisallow: /x", agent: "MJ13bot",
		allowed: "/x"},
	{name: "names with dots are whole", file: "User-agent: archive.org_bot\nDisallow: /x",
		agent: "archive", allowed: "/x"},
	{name: "star and a comment", file: "User-agent: * # all\nDisallow: /x", forbidden: "/x"},
	{name: "star and a word", file: "User-agent: * bots\nDisallow: /x", forbidden: "/x"},
	{name: "star glued to a word", file: "User-agent: *bot\nDisallow: /x", allowed: "/x"},
	{name: "agent with spaces before", file: "User-agent: foobot\nDisallow: /x", agent: "  FooBot/2",
		forbidden: "/x"},
	{name: "agent without a token", file: "User-agent:\nDisallow: /x\n\nUser-agent: *\nDisallow: /y",
		agent: "(x)", allowed: "/x", forbidden: "/y"},
	{name: "agent named star", file: "User-agent: *\nDisallow: /x", agent: "*", forbidden: "/x"},
	{name: "own group with an empty rule",
		file: "User-agent: foobot\nDisallow:\nUser-agent: *\nDisallow: /", allowed: "/x"},
	{name: "own group without rules",
		file: "User-agent: *\nDisallow: /\n\nUser-agent: foobot\n", allowed: "/x"},
	{name: "the last group lacks rules, the one before is closed",
		file: "User-agent: *\nDisallow: /x\nUser-agent: foobot\n", allowed: "/x"},
	{name: "rule without a slash ends the list of agents",
		file: "User-agent: foobot\nDisallow: x\nUser-agent: *\nDisallow: /x", allowed: "/x"},
	{name: "other records do not",
		file: "User-agent: foobot\nNoindex: /a\nHost: h\nUser-agent: b\nDisallow: /x", forbidden: "/x"},
	{name: "own groups are merged around others",
		file: "User-agent: foobot\nDisallow: /a\nUser-agent: *\nDisallow: /b\nUser-agent: " +
			"FOOBOT\nDisallow: /c", forbidden: "/a /c", allowed: "/b"},
	{name: "misspelt",
		file: "useragent: foobot\nDISALOW: /a\ndissalow: /b\n" +
			"diasllow: /c\ndisallaw: /d\nAllow : /a/b",
		forbidden: "/a /b /c /d", allowed: "/a/b"},
	{name: "user agent in two words", file: "User Agent: foobot\nDisallow: /x", forbidden: "/x"},
	{name: "longer keys are others",
		file: "User-agent: foobot\nDisallowed: /x\nallow-x: /x\nadisallow: /x", allowed: "/x"},
	{name: "no colon, colon in the value", file: "User-agent foobot\nDisallow /x:y", forbidden: "/x:y",
		allowed: "/x"},
	{name: "no colon, two values", file: "User-agent: foobot\nDisallow /x /y", allowed: "/x /y"},
	{name: "no colon, no value", file: "User-agent: foobot\nDisallow\nDisallow: /x", forbidden: "/x"},
	{name: "all line ends", file: "User-agent: foobot\r\nDisallow: /a\rDisallow: /b\n\r\nDisallow: /c",
		forbidden: "/a /b /c"},
	{name: "NUL around", file: "\x00User-agent: foobot\x00\nDisallow: /x\x00", forbidden: "/x /xy"},
	{name: "NUL in a key", file: "User-agent: foobot\nDis\x00allow: /x\nDisallow: /y", forbidden: "/y",
		allowed: "/x"},
	{name: "bytes that are no UTF-8", file: "User-agent: foobot\nDisallow: /caf\xe9",
		forbidden: "/caf%E9", allowed: "/caf%C3%A9"},
	{name: "mark in the middle is a bad line",
		file: "User-agent: foobot\n\xef\xbb\xbfDisallow: /x\nDisallow: /y", allowed: "/x",
		forbidden: "/y"},
	{name: "UTF-16, little end first", file: utf16File(binary.LittleEndian,
		"User-agent: foobot\nDisallow: /ツ"), forbidden: "/%E3%83%84", allowed: "/x"},
	{name: "UTF-16, big end first", file: utf16File(binary.BigEndian,
		"User-agent: foobot\nDisallow: /x") + "\x00", forbidden: "/x"},
	{name: "rules of full URLs match nothing", file: "User-agent: *\nDisallow: http://example.com/x",
		allowed: "/x"},
	{name: "encoded slash first matches nothing", file: "User-agent: *\nDisallow: %2Fx",
		allowed: "/x /%2Fx"},
	{name: "equivalent rules tie though written otherwise",
		file: "User-agent: *\nDisallow: /ツ\nAllow: /%e3%83%84", allowed: "/%E3%83%84"},
}

func TestParse(t *testing.T) {
	for _, tc := range parseTests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.agent == "" {
				tc.agent = "foobot"
			}
			rules := Parse([]byte(tc.file), tc.agent)
			for _, target := range strings.Fields(tc.allowed) {
				if !rules.Allowed([]byte(target)) {
					t.Errorf("%q for %q forbids %s", tc.file, tc.agent, target)
				}
			}
			for _, target := range strings.Fields(tc.forbidden) {
				if rules.Allowed([]byte(target)) {
					t.Errorf("%q for %q allows %s", tc.file, tc.agent, target)
				}
			}
		})
	}
}

func utf16File(order binary.AppendByteOrder, text string) string {
	var file []byte
	for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
		file = order.AppendUint16(file, unit)
	}
	return string(file)
}

func TestCrawlDelay(t *testing.T) {
	for _, tc := range []struct {
		name string
		file string
		want time.Duration
	}{
		{name: "none", file: "User-agent: foobot\nDisallow: /x", want: 0},
		{name: "own, not everybody's",
			file: "User-agent: *\nCrawl-delay: 9\n\nUser-agent: foobot\nDisallow: /x", want: 0},
		{name: "before any group", file: "Crawl-delay: 9\nUser-agent: foobot\nDisallow: /x", want: 0},
		{name: "after the rules", file: "User-agent: foobot\nDisallow: /x\nCrawl-delay: 9",
			want: 9 * time.Second},
		{name: "of the agents named before it",
			file: "User-agent: foobot\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x", want: time.Second},
		{name: "not of those named after it",
			file: "User-agent: b\nCrawl-delay: 1\nUser-agent: foobot\nDisallow: /x", want: 0},
		{name: "the longest", file: "User-agent: foobot\nCrawl-delay: 1\nCrawl-delay: 3\nCrawl-delay: 2",
			want: 3 * time.Second},
		{name: "misspelt", file: "User-agent: foobot\nCrawl delay: 1", want: time.Second},
		{name: "a negative one keeps the other",
			file: "User-agent: foobot\nCrawl-delay: 2\nCrawl-delay: -1", want: 2 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Parse([]byte(tc.file), "foobot").CrawlDelay(); got != tc.want {
				t.Errorf("%q: %v, want %v", tc.file, got, tc.want)
			}
		})
	}
}

func TestParseDelay(t *testing.T) {
	for _, tc := range []struct {
		value string
		want  time.Duration
	}{
		{value: "10", want: 10 * time.Second},
		{value: "0.5", want: time.Second / 2},
		{value: "0,5", want: time.Second / 2},
		{value: ".25", want: time.Second / 4},
		{value: "5.", want: 5 * time.Second},
		{value: "007", want: 7 * time.Second},
		{value: "10s", want: 10 * time.Second},
		{value: "3 seconds", want: 3 * time.Second},
		{value: "1.5.9", want: 1500 * time.Millisecond},
		{value: "0", want: 0},
		{value: "", want: 0},
		{value: ".", want: 0},
		{value: "-1", want: 0},
		{value: "+1", want: 0},
		{value: "[5]", want: 0},
		{value: "soon", want: 0},
		{value: "NaN", want: 0},
		{value: "Inf", want: 0},
		{value: "9223372036", want: 9223372036 * time.Second},
		{value: "9223372037", want: math.MaxInt64},
		{value: "99999999999999999999999", want: math.MaxInt64},
		{value: strings.Repeat("9", 5000), want: math.MaxInt64},
	} {
		if got := parseDelay([]byte(tc.value)); got != tc.want {
			t.Errorf("%.30q: %v, want %v", tc.value, got, tc.want)
		}
	}
}

func TestRecord(t *testing.T) {
	for _, tc := range []struct {
		line  string
		key   key
		value string
	}{
		{line: "Allow:/x", key: keyAllow, value: "/x"},
		{line: "\t Disallow \t:\t /x y \t# z", key: keyDisallow, value: "/x y"},
		{line: "User-agent: a:b", key: keyUserAgent, value: "a:b"},
		{line: "crawl-delay 5", key: keyCrawlDelay, value: "5"},
		{line: "Sitemap: http://x/", key: keySitemap, value: "http://x/"},
		{line: "sitemap http://x/", key: keySitemap, value: "http://x/"},
		{line: "Host: x", key: keyOther},
		{line: "# Allow: /x", key: keyOther},
		{line: ":", key: keyOther},
		{line: "", key: keyOther},
		{line: "allow", key: keyOther},
		{line: strings.Repeat("x", 1000) + ": /", key: keyOther},
	} {
		key, value := record([]byte(tc.line))
		if key != tc.key || key != keyOther && string(value) != tc.value {
			t.Errorf("%.40q: %d, %q; want %d, %q", tc.line, key, value, tc.key, tc.value)
		}
	}
}
