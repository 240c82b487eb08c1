package configs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// take puts one entry of the text into the configuration, or notes what is
// wrong with it.
func (r *reader) take(e entry) {
	for n := range len(e.path) {
		if r.strange[lower(e.path[:n].String())] {
			return // said once already
		}
	}
	if e.form == isValue {
		r.takeValue(e)
	} else {
		r.takeTable(e)
	}
}

func (r *reader) takeTable(e entry) {
	written := e.path.String()
	name := lower(written)
	s, isSetting := r.settings[name]
	switch {
	case name == rulesKey && e.form == isList:
		r.beginRule(e)
		return
	case listOf(name) != nil && e.form == isList:
		r.beginTable(listOf(name), e)
		return
	case isSetting:
		r.bad[name] = true
		r.mistake(e.line, s.name, "is a table here", s.allowed)
	case !r.sections[name]:
		r.mistake(e.line, shown(written), "no such table"+r.hint(name), "")
	case e.form == isList:
		r.mistake(e.line, name, "is one table, not a list of tables", "["+name+"]")
		return
	default:
		r.begin(name, e.line, false)
		return
	}
	r.strange[name] = true
}

// begin notes that a table is spoken of, which a header and an inline table may
// do but once.
func (r *reader) begin(name string, line int, dotted bool) {
	first, known := r.tables[name]
	if !known {
		r.tables[name] = begun{line, dotted}
		return
	}
	if !dotted || !first.dotted {
		r.broken = true
		r.mistake(line, name, fmt.Sprintf("this table already stands on line %d: say "+
			"everything there", first.line), "")
	}
}

func (r *reader) takeValue(e entry) {
	if r.isOfRule(e) {
		r.takeOfRule(e)
		return
	}
	if r.isOfTable(e) {
		r.takeOfTable(e)
		return
	}
	written := e.path.String()
	name := lower(written)
	if table := lower(e.path[:len(e.path)-1].String()); len(e.path)-e.parent > 1 && r.sections[table] {
		r.begin(table, e.line, true)
	}
	s, ok := r.settings[name]
	switch {
	case r.sections[name]:
		r.mistake(e.line, name, "is a table, not a single value", "["+name+"] and its keys below it")
	case !ok:
		r.mistake(e.line, shown(written), "no such key"+r.hint(name), "")
	case r.set[name] != 0:
		r.broken = true
		r.mistake(e.line, s.name, fmt.Sprintf("already set on line %d", r.set[name]), "")
	default:
		r.set[name] = e.line
		r.assign(s, e)
	}
}

// assign sets one setting.
func (r *reader) assign(s setting, e entry) {
	v, line, err := decode(e)
	if err != nil {
		r.broken = true
		if s.secret {
			err = errors.New("is not valid TOML; a string stands in quotes")
		}
	} else {
		err = s.read(&r.config, v)
	}
	if err != nil {
		r.bad[lower(s.name)] = true
		r.mistake(line, s.name, err.Error(), s.allowed)
	}
}

// decode is the value of e. line is where an error belongs.
func decode(e entry) (v any, line int, err error) {
	var m map[string]any
	_, err = toml.Decode("v = "+e.raw, &m)
	if err == nil {
		return m["v"], e.line, nil
	}
	if !strings.ContainsAny(e.raw[:1], `"'[`) {
		return nil, e.line, bareError(e.raw, err)
	}
	line = e.line
	what := err.Error()
	if p, ok := errors.AsType[toml.ParseError](err); ok {
		line += min(max(p.Position.Line-1, 0), strings.Count(e.raw, "\n"))
		what = p.Message
	}
	return nil, line, errors.New("is not valid TOML: " + oneLine(what))
}

// bareError is about something without quotes, most often a string that lacks
// them.
func bareError(raw string, err error) error {
	if strings.Trim(raw, "+-0123456789_.eE") == "" {
		if p, ok := errors.AsType[toml.ParseError](err); ok {
			return errors.New(oneLine(p.Message))
		}
	}
	return fmt.Errorf("%s is not valid TOML; a string stands in quotes", shown(raw))
}
