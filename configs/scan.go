package configs

import (
	"errors"
	"strings"

	"github.com/BurntSushi/toml"
)

// The scanner finds where things stand in a TOML text; what a key or a value
// means is left to the toml package, which is given them one at a time. So each
// has its line, and one that is no TOML does not hide those after it.

const (
	maxDepth = 16 // of lists and inline tables; settings need two
	maxParts = 8  // of a dotted key; settings need two
)

// form is what an entry states.
type form uint8

const (
	isValue  form = iota // key = value
	isTable              // [key]
	isInline             // key = { … }; what is in it follows as entries of its own
	isList               // [[key]]
)

// entry is one thing a settings text states.
type entry struct {
	path   toml.Key // from the top
	parent int      // how many parts of path come from the header or key around it
	form   form
	line   int    // where the key stands
	raw    string // the value as written, if form is isValue
}

// flaw is a place that is no TOML.
type flaw struct {
	line int
	key  toml.Key // nil: no key can be told
	what string
}

// scanner goes once through a text. Its methods move pos and err at the place
// that pos then is at.
type scanner struct {
	text    string
	pos     int
	counted int // line is that of this place
	line    int
	table   toml.Key // of the last header
	mute    int      // above 0: in something whose entries have no path
	lost    bool     // the last header was wrong, so keys have no path
	whole   bool     // no setting was passed over
	entries []entry
	flaws   []flaw
}

// scan takes text apart. whole is false if there may be settings in it that are
// not among the entries: where a bracket or quote does not close, or beyond the
// limits above, the rest of text is not looked at.
func scan(text string) (entries []entry, flaws []flaw, whole bool) {
	s := &scanner{whole: true, text: strings.TrimPrefix(text, "\ufeff"), line: 1}
	for s.blank(); s.pos < len(s.text) && len(s.flaws) <= maxMistakes; s.blank() {
		if err := s.statement(); err != nil {
			s.flaw(err)
			s.restOfLine()
		}
	}
	return s.entries, s.flaws, s.whole
}

// lineHere is the number of the line that pos is in. Since pos never goes back,
// all calls together count each newline once.
func (s *scanner) lineHere() int {
	s.line += strings.Count(s.text[s.counted:s.pos], "\n")
	s.counted = s.pos
	return s.line
}

// flaw notes err, which came up at pos unless it says another line.
func (s *scanner) flaw(err error) {
	f := flaw{line: s.lineHere(), what: err.Error()}
	if at, ok := errors.AsType[*placed](err); ok {
		f.line, f.key = at.line, at.key
	}
	s.whole = s.whole && f.key != nil
	s.flaws = append(s.flaws, f)
}

// placed is an error that belongs elsewhere than where the scanner stopped.
type placed struct {
	line int
	key  toml.Key
	error
}

func (s *scanner) statement() error {
	read := s.header
	if s.text[s.pos] != '[' {
		read = func() error { return s.pair(s.table, 0) }
	}
	if err := read(); err != nil {
		return err
	}
	s.spaces()
	if c := s.peek(); c != 0 && c != '\n' && c != '#' {
		return errors.New("there is more on the line than belongs to it")
	}
	return nil
}

// header reads [key] or [[key]]. Where only the end of it is wrong, the keys
// below are still those of its table.
func (s *scanner) header() error {
	line, form, closing := s.lineHere(), isTable, "]"
	if strings.HasPrefix(s.text[s.pos:], "[[") {
		form, closing = isList, "]]"
	}
	s.pos += len(closing)
	key, err := s.key()
	if s.lost = err != nil; s.lost {
		return err
	}
	s.table = key
	if !strings.HasPrefix(s.text[s.pos:], closing) {
		return errors.New("the table's name does not end in " + closing)
	}
	s.pos += len(closing)
	s.entries = append(s.entries, entry{path: key, form: form, line: line})
	return nil
}

// pair reads key = value, where the key is one of table. depth is how many
// inline tables and lists it is in.
func (s *scanner) pair(table toml.Key, depth int) error {
	line := s.lineHere()
	own, err := s.key()
	if err != nil {
		return err
	}
	path := append(table[:len(table):len(table)], own...)
	if s.peek() != '=' {
		return &placed{line, s.known(path), errors.New("no = and value behind the key")}
	}
	s.pos++
	s.spaces()
	e := entry{path: path, parent: len(table), line: line}
	if s.peek() == '{' {
		e.form = isInline
		s.add(e)
		return s.inline(path, depth+1)
	}
	start := s.pos
	if err := s.value(depth); err != nil {
		return s.inPair(err, path)
	}
	e.raw = strings.TrimRight(s.text[start:s.pos], " \t\r")
	if e.raw == "" {
		return &placed{line, s.known(path), errors.New("no value behind the =")}
	}
	s.add(e)
	return nil
}

// inPair adds the key to an error in its value, unless the error has a key.
func (s *scanner) inPair(err error, path toml.Key) error {
	if at, ok := errors.AsType[*placed](err); ok {
		if at.key == nil {
			at.key = s.known(path)
		}
		return err
	}
	return &placed{s.lineHere(), s.known(path), err}
}

// known is path where the scanner knows which table it is in, else nil.
func (s *scanner) known(path toml.Key) toml.Key {
	if s.lost || s.mute > 0 {
		return nil
	}
	return path
}

func (s *scanner) add(e entry) {
	if s.known(e.path) != nil {
		s.entries = append(s.entries, e)
	}
}

// key reads a dotted key up to where none can go on.
func (s *scanner) key() (toml.Key, error) {
	start, line := s.pos, s.lineHere()
	for c := s.peek(); c != 0 && strings.IndexByte("=]},#\n", c) < 0; c = s.peek() {
		if c == '"' || c == '\'' {
			if err := s.quotes(); err != nil {
				return nil, err
			}
			continue
		}
		s.pos++
	}
	text := s.text[start:s.pos]
	if strings.Count(text, ".") >= maxParts {
		return nil, s.giveUp(line, nil, "no key has so many parts")
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, &placed{line: line, error: err}
	}
	return key, nil
}

func parseKey(text string) (toml.Key, error) {
	var ignored map[string]any
	md, err := toml.Decode(" "+text+" = 0", &ignored)
	if err != nil || len(md.Keys()) != 1 {
		return nil, errors.New("this is neither a key with a value nor a [table]") // and may hold a token
	}
	return md.Keys()[0], nil
}
