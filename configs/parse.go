package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// maxFile is far beyond any settings file: room for 40,000 spiders to dial.
const maxFile = 1 << 20

// Load reads a settings file. What it does not set is as in Default. The error
// is an *Error with all mistakes in the file, or says why it cannot be read.
func Load(path string) (Config, error) {
	data, err := readFile(path)
	if err != nil {
		return Config{}, err
	}
	return newReader(path).parseFiles(data, nil)
}

// parseFiles parses a settings file, and the file of shared networks that it names.
func (r *reader) parseFiles(data []byte, overrides []Override) (Config, error) {
	c, err := r.parse(data, overrides)
	if err != nil {
		return Config{}, err
	}
	if c.shared, err = loadShared(c.Politeness.SharedNetworks); err != nil {
		return Config{}, err
	}
	return c, nil
}

// readFile reads a settings file, up to a byte more than one may have. "" is an empty one.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return data, nil
}

// Parse is Load of the text data, which errors call name.
func Parse(name string, data []byte) (Config, error) {
	return newReader(name).parse(data, nil)
}

func (r *reader) parse(data []byte, overrides []Override) (Config, error) {
	if r.isText(data) {
		r.read(string(data), overrides)
	}
	if err := errorOf(r.mistakes); err != nil {
		return Config{}, err
	}
	return r.config, nil
}

// reader turns one settings text into a Config.
type reader struct {
	file      string
	config    Config
	settings  map[string]setting  // by lower-case name
	sections  map[string]bool     // the tables there are, lower case
	set       map[string]int      // line of each setting in the text, by lower-case name
	tables    map[string]begun    // by lower-case name
	strange   map[string]bool     // names that are no tables of ours; what is below them is not looked at
	bad       map[string]bool     // settings with a mistake, by lower-case name
	overrides map[string]Override // by lower-case name
	broken    bool                // it is no TOML, and a mistake says so
	mistakes  []Mistake

	rule    *draft // the one of [[rules]] that is being read; nil: none is
	rulesAt int    // line of the first [[rules]]; 0: there was none

	table    *tableDraft    // of another list, that is being read; nil: none is
	tablesAt map[string]int // line of the first table of such a list, by its key
}

// begun is where a table was first spoken of.
type begun struct {
	line   int
	dotted bool // by a key like spider.listen, which may be said again
}

func newReader(file string) *reader {
	r := &reader{
		file:      file,
		config:    Default(),
		settings:  map[string]setting{},
		sections:  map[string]bool{},
		set:       map[string]int{},
		tables:    map[string]begun{},
		strange:   map[string]bool{},
		bad:       map[string]bool{},
		overrides: map[string]Override{},
		tablesAt:  map[string]int{},
	}
	for _, s := range settings() {
		r.settings[lower(s.name)] = s
		for table := tableOf(lower(s.name)); table != ""; table = tableOf(table) {
			r.sections[table] = true
		}
	}
	return r
}

func (r *reader) mistake(line int, key, problem, allowed string) {
	r.mistakes = append(r.mistakes, Mistake{r.file, line, key, problem, allowed})
}

// isText reports whether data is of a size and sort to look at.
func (r *reader) isText(data []byte) bool {
	if len(data) > maxFile {
		r.mistake(1, "", fmt.Sprintf("this is larger than %d bytes, so no settings file", maxFile), "")
		return false
	}
	line := 1
	for rest := data; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		if c == 0 || c == utf8.RuneError && n == 1 {
			r.mistake(line, "", "this is not UTF-8 text", "TOML in UTF-8")
			return false
		}
		if c == '\n' {
			line++
		}
		rest = rest[n:]
	}
	return true
}

func (r *reader) read(text string, overrides []Override) {
	entries, flaws, whole := scan(text)
	for _, f := range flaws {
		r.syntax(f.line, f.key, f.what)
	}
	for _, e := range entries {
		if len(r.mistakes) > maxMistakes {
			return
		}
		r.take(e)
	}
	r.endRule()
	r.endTable()
	if !r.broken {
		r.wholly(text)
	}
	r.override(overrides)
	r.checkValues()
	if whole {
		r.checkRules()
	}
}

// syntax notes what is no TOML.
func (r *reader) syntax(line int, key toml.Key, what string) {
	r.broken = true
	if name := lower(key.String()); key != nil {
		r.bad[name] = true
		if s, ok := r.settings[name]; ok {
			r.mistake(line, s.name, oneLine(what), s.allowed)
			return
		}
	}
	r.mistake(line, shown(key.String()), oneLine(what), "")
}

// wholly has the toml package read the text as one, for what no single entry
// shows.
func (r *reader) wholly(text string) {
	var ignored map[string]any
	_, err := toml.Decode(text, &ignored)
	if err == nil {
		return
	}
	line, what := 1, err.Error()
	if e, ok := errors.AsType[toml.ParseError](err); ok {
		line, what = e.Position.Line, e.Message
	}
	r.syntax(min(max(line, 1), strings.Count(text, "\n")+1), nil, what)
}

// checkValues notes values out of range. Only what the text sets can be wrong:
// the defaults are right.
func (r *reader) checkValues() {
	for _, s := range settings() {
		name := lower(s.name)
		line, ok := r.set[name]
		if !ok {
			continue
		}
		fault := s.fault(&r.config)
		if fault == "" {
			continue
		}
		r.bad[name] = true
		if o, overridden := r.overrides[name]; overridden {
			r.mistakes = append(r.mistakes, Mistake{Key: o.Name, Problem: fault, Allowed: s.allowed})
		} else {
			r.mistake(line, s.name, fault, s.allowed)
		}
	}
}

// checkRules notes values that do not go together.
func (r *reader) checkRules() {
	for _, rule := range rules() {
		if key, line, ok := r.blame(rule.keys); ok {
			if fault := rule.fault(r.config); fault != "" {
				r.mistake(line, key, fault, "")
			}
		}
	}
}

// blame returns the key that a mistake of several keys is reported for: the
// first that the text sets. ok is false if it sets none, or if one of them is
// a mistake by itself.
func (r *reader) blame(keys []string) (key string, line int, ok bool) {
	for _, k := range keys {
		if r.bad[lower(k)] {
			return "", 0, false
		}
		if at, set := r.set[lower(k)]; set && !ok {
			key, line, ok = k, at, true
		}
	}
	return key, line, ok
}

// lower is s with the ASCII letters in lower case. The other letters stay, since
// some of them fold to ASCII ones.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}
