package redis

import (
	"regexp"
	"slices"
	"strings"
)

// Each time that a script runs, Redis makes all its Lua functions anew, which takes longer than the
// work of most scripts. So a script has only that part of the shared code that it needs, and the values
// of constants instead of their names.

// sharedCode is the code that scripts share, as statements.
type sharedCode struct {
	statements []statement
	makes      map[string][]int // the statements that make a name
	constants  map[string]string
}

// statement is a statement of the shared code that is in no other one.
type statement struct {
	text  string
	makes []string // "a", or "a.b" for a function in a table
	uses  []string // likewise
	stays bool     // all scripts have it, since it does something
}

const value = `(?:\d+(?: \^ \d+)?|'\w*')` // of a constant

var (
	constantsOf = regexp.MustCompile(`^local ([A-Z_]+(?:, [A-Z_]+)*) = (` + value + `(?:, ` + value + `)*)$`)
	functionOf  = regexp.MustCompile(`^(?:local )?function ([\w.]+)`)
	localsOf    = regexp.MustCompile(`(?s)^local (\w+(?:, \w+)*)(?: = (.*))?$`)
	innerOf     = regexp.MustCompile(`(?m)^  function (\w+)`) // of a block: they were declared before
)

// parse splits shared code into statements. A statement begins in the first column, and its other
// lines do not, except the line that closes it.
func parse(code string) *sharedCode {
	c := &sharedCode{makes: map[string][]int{}, constants: map[string]string{}}
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			c.add(strings.Join(lines, "\n"))
		}
		lines = lines[:0]
	}
	for line := range strings.Lines(code) {
		line = strings.TrimRight(rewrite(line, nil), " \n")
		if line == "" {
			continue
		}
		first, _, _ := strings.Cut(line, " ")
		if line[0] != ' ' && !slices.Contains([]string{"end", "else", "elseif", "until", "}", ")"}, first) {
			flush()
		}
		lines = append(lines, line)
	}
	flush()
	return c
}

// add adds a statement, or constants.
func (c *sharedCode) add(text string) {
	if m := constantsOf.FindStringSubmatch(text); m != nil {
		values := strings.Split(m[2], ", ")
		for i, name := range strings.Split(m[1], ", ") {
			if before, ok := c.constants[name]; ok {
				panic("the shared code defines " + name + " twice: " + before + " and " + values[i])
			}
			c.constants[name] = values[i]
		}
		return
	}
	var s statement
	s.text, s.uses = c.resolve(text)
	switch of, locals := functionOf.FindStringSubmatch(text), localsOf.FindStringSubmatch(text); {
	case of != nil:
		s.makes = of[1:]
	case locals != nil && !strings.Contains(locals[2], "call("):
		s.makes = strings.Split(locals[1], ", ")
	case strings.HasPrefix(text, "do\n"):
		for _, m := range innerOf.FindAllStringSubmatch(text, -1) {
			s.makes = append(s.makes, m[1])
		}
	}
	s.stays = len(s.makes) == 0
	for _, name := range s.makes {
		c.makes[name] = append(c.makes[name], len(c.statements))
	}
	c.statements = append(c.statements, s)
}

// resolve puts in the values of constants. It returns the names that code uses otherwise.
func (c *sharedCode) resolve(code string) (text string, uses []string) {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(rewrite(line, func(name, field string) string {
			if value, ok := c.constants[name]; ok && field == "" {
				if strings.Contains(value, "^") {
					return "(" + value + ")"
				}
				return value
			}
			uses = append(uses, name)
			if field != "" {
				uses = append(uses, name+"."+field)
			}
			return name
		}))
	}
	return b.String(), uses
}

// link returns a script with the shared code that it needs.
func (c *sharedCode) link(script string) string {
	script, uses := c.resolve(script)
	needed := make([]bool, len(c.statements))
	for i, s := range c.statements {
		if s.stays {
			needed[i], uses = true, append(uses, s.uses...)
		}
	}
	for len(uses) > 0 {
		name := uses[len(uses)-1]
		uses = uses[:len(uses)-1]
		for _, i := range c.makes[name] {
			if !needed[i] {
				needed[i], uses = true, append(uses, c.statements[i].uses...)
			}
		}
	}
	var b strings.Builder
	for i, s := range c.statements {
		if needed[i] {
			b.WriteString(s.text + "\n")
		}
	}
	b.WriteString(script)
	return b.String()
}

// rewrite returns a line of Lua without its comment, with the names of variables as put returns them.
// field is what follows a name and a dot.
func rewrite(line string, put func(name, field string) string) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		end := i + 1
		switch c := line[i]; {
		case c == '\'' || c == '"':
			for line[end] != c {
				if line[end] == '\\' {
					end++
				}
				end++
			}
			end++
		case strings.HasPrefix(line[i:], "--"):
			return b.String() + "\n"
		case strings.HasPrefix(line[i:], ".."):
			end++
		case c == '.' || c >= '0' && c <= '9': // a field, or a number
			end += wordLen(line[end:])
		case isWord(c):
			end = i + wordLen(line[i:])
			field := ""
			if end+1 < len(line) && line[end] == '.' && line[end+1] != '.' {
				field = line[end+1:][:wordLen(line[end+1:])]
			}
			if put != nil {
				b.WriteString(put(line[i:end], field))
				i = end
			}
		}
		b.WriteString(line[i:end])
		i = end
	}
	return b.String()
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func wordLen(text string) (n int) {
	for n < len(text) && isWord(text[n]) {
		n++
	}
	return n
}
