package configs

import (
	"errors"
	"strings"

	"github.com/BurntSushi/toml"
)

var errOpenString = errors.New("the string does not end")

const tooDeep = "lists or tables in one another, too many"

// value moves past one value. depth is how many lists and inline tables it is
// in. It only finds the end: whether this is a value the toml package decides.
func (s *scanner) value(depth int) error {
	switch s.peek() {
	case '"', '\'':
		return s.quotes()
	case '[':
		return s.list(depth + 1)
	case '{':
		s.mute++
		defer func() { s.mute-- }()
		return s.inline(nil, depth+1)
	}
	ends := "#\n"
	if depth > 0 {
		ends = "#\n,]}"
	}
	if n := strings.IndexAny(s.text[s.pos:], ends); n >= 0 {
		s.pos += n
		return nil
	}
	s.pos = len(s.text)
	return nil
}

// list moves past [ … ].
func (s *scanner) list(depth int) error {
	line := s.lineHere()
	if depth > maxDepth {
		return s.giveUp(line, nil, tooDeep)
	}
	s.pos++
	for s.separators(); s.pos < len(s.text); s.separators() {
		switch s.text[s.pos] {
		case ']':
			s.pos++
			return nil
		case '}':
			return errors.New("a } where the list goes on")
		}
		if err := s.value(depth); err != nil {
			return err
		}
	}
	return s.giveUp(line, nil, "the list does not end")
}

// inline reads { … }, the value of path.
func (s *scanner) inline(path toml.Key, depth int) error {
	line := s.lineHere()
	if depth > maxDepth || len(path) > maxParts {
		return s.giveUp(line, path, tooDeep)
	}
	s.pos++
	for s.separators(); s.pos < len(s.text); s.separators() {
		if s.text[s.pos] == '}' {
			s.pos++
			return nil
		}
		if err := s.pair(path, depth); err != nil {
			return err
		}
	}
	return s.giveUp(line, path, "the table does not end")
}

// quotes moves past a string of any of the four sorts.
func (s *scanner) quotes() error {
	quote := s.text[s.pos : s.pos+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.pos:], long) {
		return s.longString(long)
	}
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == quote[0]:
			s.pos++
			return nil
		case c == '\n':
			return errOpenString
		case c == '\\' && quote == `"` && s.pos+1 < len(s.text) && s.text[s.pos+1] != '\n':
			s.pos++
		}
	}
	return errOpenString
}

// longString moves past a string in three quotes. Up to two more of them may
// stand before the three that end it.
func (s *scanner) longString(quote string) error {
	line := s.lineHere()
	for s.pos += len(quote); s.pos < len(s.text); s.pos++ {
		if s.text[s.pos] == '\\' && quote == `"""` {
			s.pos++
			continue
		}
		if strings.HasPrefix(s.text[s.pos:], quote) {
			s.pos += len(quote)
			for range 2 {
				if s.peek() == quote[0] {
					s.pos++
				}
			}
			return nil
		}
	}
	return s.giveUp(line, nil, "the string does not end")
}

// giveUp ends the scan because of what is on line.
func (s *scanner) giveUp(line int, path toml.Key, what string) error {
	s.pos, s.whole = len(s.text), false
	return &placed{line, s.known(path), errors.New(what + "; what follows was not looked at")}
}

// peek is the byte at pos, 0 at the end of the text. A NUL in the text is the
// toml package's to refuse: the reader does so before it scans.
func (s *scanner) peek() byte {
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

// spaces moves past blanks within a line.
func (s *scanner) spaces() {
	for c := s.peek(); c == ' ' || c == '\t' || c == '\r'; c = s.peek() {
		s.pos++
	}
}

// blank moves past white space, newlines and comments.
func (s *scanner) blank() {
	for s.spaces(); s.peek() == '\n' || s.peek() == '#'; s.spaces() {
		if s.restOfLine(); s.pos < len(s.text) {
			s.pos++
		}
	}
}

// separators moves past what stands between the values of a list or the pairs
// of an inline table.
func (s *scanner) separators() {
	for s.blank(); s.peek() == ','; s.blank() {
		s.pos++
	}
}

// restOfLine moves to the next newline, or to the end.
func (s *scanner) restOfLine() {
	s.pos += len(s.lineFrom(s.pos))
}

// lineFrom is what stands from pos to the end of its line.
func (s *scanner) lineFrom(pos int) string {
	line, _, _ := strings.Cut(s.text[pos:], "\n")
	return line
}
