package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// tables is a setting that is a list of tables, each read as a whole.
type tables struct {
	key     string
	members []string // the keys of a table
	// take adds a table to a configuration. An error names the key that is at fault; "": the table.
	take func(c *Config, values map[string]any) (member string, err error)
}

// tableLists are the lists of tables, apart from [[rules]], whose keys are read one by one.
var tableLists = []*tables{&crawlTables, &canonicalTables}

// tableDraft is the table whose keys are being read.
type tableDraft struct {
	*tables
	line   int
	values map[string]any
	lines  map[string]int // of each key
	bad    bool           // it has a mistake
}

// listOf returns the list of tables with a key in lower case, or nil.
func listOf(key string) *tables {
	i := slices.IndexFunc(tableLists, func(t *tables) bool { return t.key == key })
	if i < 0 {
		return nil
	}
	return tableLists[i]
}

// isTables reports whether a setting is a list of tables.
func isTables(key string) bool { return key == rulesKey || listOf(key) != nil }

// beginTable begins with the keys below the header of a table.
func (r *reader) beginTable(list *tables, e entry) {
	r.endTable()
	if r.tablesAt[list.key] == 0 && r.set[list.key] != 0 {
		r.broken = true
		r.mistake(e.line, list.key, fmt.Sprintf("already set on line %d", r.set[list.key]), "")
	}
	if r.tablesAt[list.key] == 0 {
		r.tablesAt[list.key], r.set[list.key] = e.line, e.line
	}
	r.table = &tableDraft{tables: list, line: e.line, values: map[string]any{}, lines: map[string]int{}}
}

// isOfTable reports whether an entry is a key below the header of a table.
func (r *reader) isOfTable(e entry) bool {
	return e.parent == 1 && r.tablesAt[lower(e.path[0])] != 0
}

// takeOfTable puts one key into the table that is being read.
func (r *reader) takeOfTable(e entry) {
	d, written := r.table, e.path.String()
	if d == nil || d.key != lower(e.path[0]) { // its header is wrong; that mistake is listed already
		return
	}
	name := strings.TrimPrefix(lower(written), d.key+".")
	switch {
	case !slices.Contains(d.members, name):
		d.bad = true
		r.mistake(e.line, shown(written), "no such key", "one of "+strings.Join(d.members, ", "))
		return
	case d.lines[name] != 0:
		r.broken, d.bad = true, true
		r.mistake(e.line, d.key+"."+name, fmt.Sprintf("already set on line %d", d.lines[name]), "")
		return
	}
	d.lines[name] = e.line
	v, line, err := decode(e)
	if err != nil {
		r.broken, d.bad = true, true
		r.mistake(line, d.key+"."+name, strings.TrimSpace(err.Error()), "")
		return
	}
	d.values[name] = v
}

// endTable adds the table that has been read, unless one of its keys is a mistake.
func (r *reader) endTable() {
	d := r.table
	if d == nil {
		return
	}
	r.table = nil
	if !d.bad {
		member, err := d.take(&r.config, d.values)
		if err == nil {
			return
		}
		r.mistake(cmp.Or(d.lines[member], d.line), d.key, oneLine(err.Error()), "")
	}
	r.bad[d.key] = true
}

// eachTable calls read with each table of a list that stands as a value: key = [ … ].
func eachTable(v any, what string, read func(table map[string]any) error) error {
	all, err := as[[]any](v)
	for i, v := range all {
		table, isTable := v.(map[string]any)
		if !isTable {
			return fmt.Errorf("%s %d is %s", what, i+1, typeName(v))
		}
		if err := read(table); err != nil {
			return fmt.Errorf("%s %d: %w", what, i+1, err)
		}
	}
	return err
}
