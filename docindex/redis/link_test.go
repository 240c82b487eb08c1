package redis

import (
	"slices"
	"strings"
	"testing"
)

// TestLink links scripts with shared code of all kinds of statements.
func TestLink(t *testing.T) {
	c := parse(`-- A comment, and a constant's name in it: STATE.
local base = KEYS[1]
local STATE, MOST = 1, 2 ^ 52
local KIND = 'k'
local t = {
  state = 3,
}
local general = call('HGET', base)
if general then
  return 1
end

local function twice(x) return 2 * x end -- one line
-- inner is in a table.
function t.inner(doc)
  return doc[STATE] .. twice(MOST) .. 'STATE -- twice' .. KIND
end
function t.other() return t.inner({}) end
local both
do
  local function helper() return t.other() end
  function both() return helper() end
end
`)
	const always = "local base = KEYS[1]\nlocal general = call('HGET', base)\nif general then\n  return 1\nend\n"
	inner := strings.Replace(always, "local general", "local t = {\n  state = 3,\n}\nlocal general", 1) +
		"local function twice(x) return 2 * x end\n" +
		"function t.inner(doc)\n  return doc[1] .. twice((2 ^ 52)) .. 'STATE -- twice' .. 'k'\nend\n"
	for script, want := range map[string]string{
		"return 1":           always,
		"return { twice=1 }": always + "local function twice(x) return 2 * x end\n",
		"return x.twice":     always,
		"return 'twice'":     always,
		"return t.inner(1)":  inner,
		"return both()": inner + "function t.other() return t.inner({}) end\nlocal both\ndo\n" +
			"  local function helper() return t.other() end\n  function both() return helper() end\nend\n",
	} {
		if got := c.link(script); got != want+script {
			t.Errorf("%s is linked to\n%s\nwant\n%s", script, got, want+script)
		}
	}
}

// TestLinkRefusesTwoConstantsOfOneName defines a constant twice: where it is used nobody sees which
// value it stands for.
func TestLinkRefusesTwoConstantsOfOneName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the shared code defines ENDED twice, and nothing is said")
		}
	}()
	parse("local ENDED = 18\nlocal ENDED = 'e'\n")
}

// TestLinkedWhole looks for names of the shared code that a script uses and does not have.
func TestLinkedWhole(t *testing.T) {
	all, err := files.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if strings.Contains("core.lua crawls.lua documents.lua shapes.lua", one.Name()) {
			continue // the shared code
		}
		text, _ := read(strings.TrimSuffix(one.Name(), ".lua")).load()
		has := parse(text)
		var uses []string
		for line := range strings.Lines(text) {
			rewrite(line, func(name, field string) string {
				uses = append(uses, name, name+"."+field)
				return name
			})
		}
		slices.Sort(uses)
		for _, name := range slices.Compact(uses) {
			if len(shared().makes[name]) > len(has.makes[name]) {
				t.Errorf("%s uses %s, and has %d of the %d statements of the shared code that make it",
					one.Name(), name, len(has.makes[name]), len(shared().makes[name]))
			}
		}
	}
}
