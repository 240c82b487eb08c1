package configs

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// maxMistakes bounds how many are listed: more than anybody reads, few enough
// that a file which is no settings file at all costs little.
const maxMistakes = 1000

// Mistake is one thing wrong with the settings.
type Mistake struct {
	File    string // "" where the settings came from no file
	Line    int    // from 1; 0 where the settings came from no file
	Key     string // "spider.listen"; as written where there is no such setting; "" where no key is to blame
	Problem string // what is wrong; never with a token in it
	Allowed string // what may stand there; "" where Problem says it
}

// String is "file:line: key: problem; allowed: …", on one line.
func (m Mistake) String() string {
	var b strings.Builder
	if m.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", m.File, m.Line)
	}
	if m.Key != "" {
		b.WriteString(m.Key + ": ")
	}
	b.WriteString(m.Problem)
	if m.Allowed != "" {
		b.WriteString("; allowed: " + m.Allowed)
	}
	return b.String()
}

// Error is all that is wrong with the settings: at least one mistake, in the
// order of lines.
type Error struct {
	Mistakes []Mistake
	More     bool // there are more than the maxMistakes that are listed
}

// Error lists the mistakes, one a line.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Mistakes)+1)
	for _, m := range e.Mistakes {
		lines = append(lines, m.String())
	}
	if e.More {
		lines = append(lines, "and more: put these right first")
	}
	return strings.Join(lines, "\n")
}

// errorOf is nil if there are no mistakes.
func errorOf(mistakes []Mistake) error {
	if len(mistakes) == 0 {
		return nil
	}
	sort.SliceStable(mistakes, func(i, j int) bool { return mistakes[i].Line < mistakes[j].Line })
	if len(mistakes) > maxMistakes {
		return &Error{Mistakes: mistakes[:maxMistakes], More: true}
	}
	return &Error{Mistakes: mistakes}
}

// quoted is s in quotes, cut to a length that fits a message.
func quoted(s string) string {
	return strconv.Quote(clipped(s))
}

// shown is s cut to a length that fits a message, on one line.
func shown(s string) string {
	return oneLine(clipped(s))
}

// oneLine is s with what cannot be printed replaced.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

func clipped(s string) string {
	const most = 60
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
