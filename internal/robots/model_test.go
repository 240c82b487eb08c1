package robots

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// The naive model reads and matches as the RFC says, and slowly: regular expressions for lines, a
// slice of symbols for a path, and the set of all possible positions for a pattern.

type model struct {
	rules []modelRule
}

type modelRule struct {
	allow   bool
	pattern []string // canonical octets; modelAny and modelEnd
	octets  int
}

const (
	modelAny = "any"
	modelEnd = "end"
)

var (
	modelBreak   = regexp.MustCompile(`\r\n|\r|\n`)
	modelTrimmed = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f" +
		"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f \x7f"
	modelColon = regexp.MustCompile(
		`(?is)^(user[-_ ]?agent|allow|dissallow|dissalow|disallow|disalow|diasllow|disallaw)[\x00-\x20\x7f]*:(.*)$`)
	modelNoColon = regexp.MustCompile(
		`(?is)^(user[-_]?agent|allow|dissallow|dissalow|disallow|disalow|diasllow|disallaw)[\x00-\x20\x7f]+([^\x00-\x20\x7f]+)$`)
	modelProduct  = regexp.MustCompile(`^[-_.a-zA-Z0-9]*`)
	modelEveryone = regexp.MustCompile(`^\*([\x00-\x20\x7f]|$)`)
)

func newModel(body, agent string) model {
	agent = modelProduct.FindString(strings.Trim(agent, modelTrimmed))
	own, everyone := model{}, model{}
	named, isOwn, isEveryone, inRules := false, false, false, false
	for _, line := range modelBreak.Split(strings.TrimPrefix(body, "\xef\xbb\xbf"), -1) {
		key, value := modelLine(line)
		switch {
		case key == "":
		case strings.HasPrefix(key, "user"):
			isOwn, isEveryone, inRules = isOwn && !inRules, isEveryone && !inRules, false
			product := modelProduct.FindString(value)
			isOwn = isOwn || product != "" && strings.EqualFold(product, agent)
			isEveryone = isEveryone || modelEveryone.MatchString(value)
			named = named || isOwn
		default:
			inRules = true
			if isOwn {
				own.add(value, key == "allow")
			}
			if isEveryone {
				everyone.add(value, key == "allow")
			}
		}
	}
	if named {
		return own
	}
	return everyone
}

func modelLine(line string) (key, value string) {
	line, _, _ = strings.Cut(line, "#")
	line = strings.Trim(line, modelTrimmed)
	found := modelColon.FindStringSubmatch(line)
	if found == nil {
		found = modelNoColon.FindStringSubmatch(line)
	}
	// (?i) matches "ſ" with "S"
	if found == nil || strings.ContainsFunc(found[1], func(c rune) bool { return c > unicode.MaxASCII }) {
		return "", ""
	}
	return strings.ToLower(found[1]), strings.Trim(found[2], modelTrimmed)
}

func (t *model) add(pattern string, allow bool) {
	if strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "*") {
		t.rules = append(t.rules, newModelRule(pattern, allow))
	}
}

func newModelRule(pattern string, allow bool) modelRule {
	r := modelRule{allow: allow}
	body, anchored := strings.CutSuffix(pattern, "$")
	for i, part := range strings.Split(body, "*") {
		if i > 0 {
			r.pattern = append(r.pattern, modelAny)
		}
		r.pattern = append(r.pattern, modelSymbols(part)...)
	}
	r.pattern = modelOctets(modelOpen(r.pattern))
	if anchored {
		r.pattern = append(r.pattern, modelEnd)
	}
	r.octets = len(r.pattern)
	return r
}

// modelSymbols splits text into the symbols that are compared.
func modelSymbols(text string) []string {
	var symbols []string
	for text != "" {
		if text[0] == '%' && len(text) >= 3 {
			if c, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
				symbols = append(symbols, modelSymbol(byte(c), true))
				text = text[3:]
				continue
			}
		}
		symbols = append(symbols, modelSymbol(text[0], false))
		text = text[1:]
	}
	return symbols
}

func modelSymbol(c byte, encoded bool) string {
	const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
	const reserved = ":/?#[]@!$&'()*+,;="
	if strings.IndexByte(unreserved+reserved, c) < 0 || encoded && (c == '/' || c == '?') {
		return fmt.Sprintf("%%%02X", c)
	}
	return string(rune(c))
}

// modelOpen decodes slashes and question marks after the first question mark.
func modelOpen(symbols []string) []string {
	open := slices.Clone(symbols)
	query := slices.Index(open, "?")
	for i := range open {
		if query >= 0 && i > query {
			open[i] = strings.NewReplacer("%2F", "/", "%3F", "?").Replace(open[i])
		}
	}
	return open
}

// modelOctets splits percent-encoded symbols, because octets are compared.
func modelOctets(symbols []string) []string {
	var octets []string
	for _, symbol := range symbols {
		if symbol == modelAny {
			octets = append(octets, symbol)
			continue
		}
		octets = append(octets, strings.Split(symbol, "")...)
	}
	return octets
}

func (r modelRule) match(target []string) bool {
	places := map[int]bool{0: true}
	for _, symbol := range r.pattern {
		if len(places) == 0 {
			return false
		}
		next := map[int]bool{}
		for at := range places {
			switch {
			case symbol == modelAny:
				for i := at; i <= len(target); i++ {
					next[i] = true
				}
			case symbol == modelEnd:
				if at == len(target) {
					next[at] = true
				}
			case at < len(target) && target[at] == symbol:
				next[at+1] = true
			}
		}
		places = next
	}
	return len(places) > 0
}

func (t model) allowed(target string) bool {
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	symbols := modelSymbols(target)
	closed, open := modelOctets(symbols), modelOctets(modelOpen(symbols))
	if strings.Join(closed, "") == "/robots.txt" {
		return true
	}
	longest, allowed := -1, true
	for _, r := range t.rules {
		if r.octets < longest || !r.match(closed) && !r.match(open) {
			continue
		}
		allowed = r.allow || allowed && r.octets == longest
		longest = r.octets
	}
	return allowed
}

// stopwatch returns the processor time of the fastest of three runs, so that a busy machine does
// not count.
func stopwatch(run func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(1<<63 - 1)
	for range 3 {
		start := threadTime()
		run()
		best = min(best, threadTime()-start)
	}
	return best
}

// threadTime returns the processor time of the calling thread.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
