package main

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// draw returns the screen, with as many lines as fit.
func (v *view) draw(width, height int, now time.Time) string {
	lines := v.head()
	foot := v.foot(width)
	room := max(0, height-len(lines)-len(foot)-1)
	if v.help {
		lines = append(lines, keysHelp...)
	} else {
		lines = append(lines, v.table(room, width, now)...)
	}
	if len(lines) > height-len(foot) {
		lines = lines[:max(0, height-len(foot))]
	}
	for len(lines) < height-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)
	var out strings.Builder
	out.WriteString(toTop)
	for i, text := range lines[:min(len(lines), height)] {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(fit(text, width))
		out.WriteString(clearLine)
	}
	out.WriteString(clearBelow)
	return out.String()
}

// keysHelp is the help that ? shows.
var keysHelp = []string{
	bold + "Keys" + plain,
	"  up, down, k, j  move the cursor",
	"  Enter           why nothing is sent to the host at the cursor now",
	"  /               search for a host or group",
	"  Esc             leave the search, or the explanation",
	"  d g n a s       sort by HELD, GAP, NEXT, ACTIVE, SLOT; again: turned round",
	"  space           hold the view, or go on",
	"  P               pause sending, or resume it; asks first",
	"  q               quit",
	"",
	"LEVEL is what keeps a slot from sending: its site, address, or shared network.",
	"",
	"Any key goes back.",
}

// wrap splits a text into lines of at most width characters, at spaces if there are any.
func wrap(text string, width int) (lines []string) {
	rest := []rune(text)
	for width > 0 && len(rest) > width {
		cut := width
		for i := width; i > width/2; i-- {
			if rest[i] == ' ' {
				cut = i
				break
			}
		}
		lines = append(lines, string(rest[:cut]))
		rest = []rune(strings.TrimLeft(string(rest[cut:]), " "))
	}
	return append(lines, string(rest))
}

// styles are the control sequences for bold, inverse and plain.
var styles = map[string]string{bold: "\x1b[1m", inverse: "\x1b[7m", plain: "\x1b[0m",
	red: "\x1b[31m", yellow: "\x1b[33m", green: "\x1b[32m", faint: "\x1b[2m"}

// fit cuts a line to the width of the screen; styles have no width. Control characters in the data
// become question marks.
func fit(text string, width int) string {
	var out strings.Builder
	n := 0
	for _, c := range printable(text) {
		style, told := styles[string(c)]
		switch {
		case told:
			out.WriteString(style)
		case n < width:
			out.WriteRune(c)
			n++
		}
	}
	return out.String()
}

// head returns the lines of totals.
func (v *view) head() []string {
	s := v.status
	if s == nil {
		return []string{"waiting for the daemon…", ""}
	}
	state := green + "ready" + plain
	switch {
	case s.Paused:
		state = inverse + yellow + " PAUSED " + plain
	case len(s.NotReady) > 0:
		state = inverse + red + " NOT READY " + plain + " " + strings.Join(s.NotReady, "; ")
	}
	if v.held {
		state += "  " + inverse + " view held: space goes on " + plain
	}
	const bar = 30
	used := min(bar, s.Slots.Used*bar/max(s.Slots.Total, 1))
	lines := []string{
		fmt.Sprintf("URL server  up %v  %s", upTime(s), state),
		fmt.Sprintf("sent/s %8s   in flight %8d   held     %9d   spiders  %6d", v.rates.sent(), s.InFlight,
			s.Held, len(s.Spiders)+s.MoreSpiders),
		fmt.Sprintf("done/s %8s   again     %8d   leftover %9d   rejected %6d", v.rates.done(), s.Retried,
			s.Leftover, s.Reject),
		fmt.Sprintf("slots  [%s%s] %d of %d, %d full", strings.Repeat("#", used), strings.Repeat(".", bar-used),
			s.Slots.Used, s.Slots.Total, s.Slots.Full),
		"waits  " + s.Levels.waiting(),
		"ended  " + s.outcomes(),
	}
	if s.Levels.Site.Backoffs > 0 {
		lines = append(lines, "backed off  "+s.Levels.backoffs())
	}
	if statuses := s.statuses(); statuses != "" {
		lines = append(lines, "status "+statuses)
	}
	if totals := s.totals(); totals != "" {
		lines = append(lines, "index  "+totals)
	}
	return append(append(lines, s.shared()...), "")
}

// numbersWide is the width of a row without GROUP and HOSTS.
const numbersWide = 7 + 1 + 3*7 + 3*8 + 2

// table returns the heading and as many slots as fit, and the number of the others.
func (v *view) table(room, width int, now time.Time) []string {
	rows := v.rows()
	group := len("GROUP")
	for _, s := range rows {
		group = max(group, len(s.Group))
	}
	group = max(len("GROUP"), min(group, width-numbersWide-len("HOSTS")))
	heading := inverse + fmt.Sprintf("%7s %-*s", orders[4].name+v.mark(4), group, "GROUP")
	for _, o := range []int{3, -1, 0, 1, 2} {
		name, wide := "QUEUED", 7
		if o >= 0 {
			name = orders[o].name
		}
		if o == 1 || o == 2 {
			wide = 8
		}
		heading += fmt.Sprintf("%*s", wide, name+v.mark(o))
	}
	lines := []string{heading + fmt.Sprintf("%8s", "LEVEL") + "  HOSTS" + plain}
	v.at = max(0, min(v.at, len(rows)-1))
	room-- // for the number of others
	from := max(0, min(v.at-room/2, len(rows)-room))
	for i := from; i < len(rows) && i < from+room; i++ {
		lines = append(lines, v.row(&rows[i], group, i == v.at, now))
	}
	if v.status != nil {
		lines = append(lines,
			faint+fmt.Sprintf("%d of %d slots in use: the busiest and the slowest; / finds any host",
				len(rows), v.status.Slots.Used)+plain)
	}
	return lines
}

// row returns one slot: green if documents are at spiders, yellow if the group is cooling.
func (v *view) row(s *topSlot, group int, cursor bool, now time.Time) string {
	next := until(s.NextSend, now)
	colour := ""
	switch {
	case cursor:
		colour = inverse
	case s.Active > 0:
		colour = green
	case next != "now":
		colour = yellow
	}
	return colour + fmt.Sprintf("%7d %-*.*s%7d%7d%7d%8s%8s%8s  %s", s.Slot, group, group, s.Group, s.Active,
		s.Queued, s.Held,
		time.Duration(s.Gap*float64(time.Second)).Round(time.Millisecond), next, s.HeldBy,
		strings.Join(s.Hosts, " ")) + plain
}

func (v *view) mark(o int) string {
	switch {
	case o < 0 || order(o) != v.order:
		return ""
	case v.reverse:
		return "^"
	}
	return "v"
}

// rows returns the busiest and slowest slots, each once, sorted, and filtered by the search.
func (v *view) rows() (rows []topSlot) {
	if v.top == nil {
		return nil
	}
	seen := map[uint32]bool{}
	for _, s := range slices.Concat(v.top.Busiest, v.top.Slowest) {
		if !seen[s.Slot] && v.matches(&s) {
			seen[s.Slot] = true
			rows = append(rows, s)
		}
	}
	sort.SliceStable(rows, func(i, j int) bool {
		a, b := &rows[i], &rows[j]
		by := orders[v.order].less(a, b)
		if v.reverse {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.Slot, b.Slot)) < 0
	})
	return rows
}

func until(t *time.Time, now time.Time) string {
	if t == nil || !t.After(now) {
		return "now"
	}
	left := t.Sub(now)
	return left.Round(max(time.Second/10, left.Truncate(time.Minute)/60)).String()
}

// foot returns the result of a search, and the keys.
func (v *view) foot(width int) (lines []string) {
	if v.found != "" {
		for _, line := range wrap(v.found, width) {
			lines = append(lines, bold+line+plain)
		}
	}
	if v.top != nil && v.top.BlockedAll > 0 {
		text := fmt.Sprintf("%d blocked:", v.top.BlockedAll)
		for _, b := range v.top.Blocked {
			text += " " + b.Host
		}
		lines = append(lines, text)
	}
	switch {
	case v.typing:
		return append(lines, "search: "+v.search+"_   enter: look, esc: leave it")
	case v.sure && v.status.Paused:
		return append(lines, "resume sending? y/n")
	case v.sure:
		return append(lines, "pause sending, for all hosts? y/n")
	case v.note != "":
		return append(lines, v.note)
	}
	text := "enter: why   /: search"
	if v.search != "" {
		text += " (" + v.search + ", esc: all)"
	}
	return append(lines, text+"   space: hold   P: pause   q: quit   ?: keys")
}

// printable replaces control characters, which a terminal would execute.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}
