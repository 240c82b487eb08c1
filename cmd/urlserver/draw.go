package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// draw is the screen: as many lines as there is room for.
func (v *view) draw(width, height int, now time.Time) string {
	lines := v.head()
	foot := v.foot()
	room := max(0, height-len(lines)-len(foot)-1)
	lines = append(lines, v.table(room, now)...)
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

// styles are what the terminal is told for bold, inverse and plain.
var styles = map[string]string{bold: "\x1b[1m", inverse: "\x1b[7m", plain: "\x1b[0m"}

// fit cuts a line to the width of the screen; styles do not count. Control characters, which are others', become question marks.
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

// head is the figures.
func (v *view) head() []string {
	s := v.status
	if s == nil {
		return []string{"waiting for the daemon…", ""}
	}
	state := bold + "ready" + plain
	switch {
	case s.Paused:
		state = inverse + " PAUSED " + plain
	case len(s.NotReady) > 0:
		state = inverse + " NOT READY " + plain + " " + strings.Join(s.NotReady, "; ")
	}
	if v.held {
		state += "  " + inverse + " view held: space goes on " + plain
	}
	const bar = 30
	used := min(bar, s.Slots.Used*bar/max(s.Slots.Total, 1))
	lines := []string{
		fmt.Sprintf("URL server  up %v  %s", upTime(s), state),
		fmt.Sprintf("sent/s %8s   in flight %8d   held     %9d   spiders  %6d", v.rates.sent(), s.InFlight, s.Held, len(s.Spiders)+s.MoreSpiders),
		fmt.Sprintf("done/s %8s   again     %8d   leftover %9d   rejected %6d", v.rates.done(), s.Retried, s.Leftover, s.Reject),
		fmt.Sprintf("slots  [%s%s] %d of %d, %d full   outcomes: %s", strings.Repeat("#", used), strings.Repeat(".", bar-used),
			s.Slots.Used, s.Slots.Total, s.Slots.Full, s.outcomes()),
	}
	return append(append(lines, s.shared()...), "")
}

// table is the slots that there is room for, below their heading.
func (v *view) table(room int, now time.Time) []string {
	heading := inverse + fmt.Sprintf("%7s %-40s", orders[4].name+v.mark(4), "GROUP")
	for _, o := range []int{3, -1, 0, 1, 2} {
		name := "QUEUED"
		if o >= 0 {
			name = orders[o].name
		}
		heading += fmt.Sprintf("%9s", name+v.mark(o))
	}
	lines := []string{heading + "  HOSTS" + plain}
	for i, s := range v.rows() {
		if i == room {
			break
		}
		lines = append(lines, fmt.Sprintf("%7d %-40s%9d%9d%9d%9s%9s  %s", s.Slot, s.Group, s.Active, s.Queued, s.Held,
			time.Duration(s.Gap*float64(time.Second)).Round(time.Millisecond), until(s.NextSend, now), strings.Join(s.Hosts, " ")))
	}
	return lines
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

// rows are the busiest and slowest slots, each once, sorted and searched.
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
	slices.SortStableFunc(rows, func(a, b topSlot) int {
		by := orders[v.order].less(&a, &b)
		if v.reverse {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.Slot, b.Slot))
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

// foot is what a search found, and which keys there are.
func (v *view) foot() (lines []string) {
	if v.found != "" {
		lines = append(lines, bold+v.found+plain)
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
	text := "sort: d g n a s   /: search"
	if v.search != "" {
		text += " (" + v.search + ", esc: all)"
	}
	return append(lines, text+"   space: hold   P: pause sending   q: quit")
}
