package redis

import (
	"strings"
	"testing"

	"urlserver/internal/testkit/redistest"
)

// TestScriptsLoad has Redis compile all scripts: Lua bounds how many local names one may have, what
// they share included.
func TestScriptsLoad(t *testing.T) {
	s := openStore(t, nil, redistest.Start(t).Addr())
	c := reach(t, s)
	all, err := files.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		name := strings.TrimSuffix(one.Name(), ".lua")
		if name == "core" || name == "crawls" || name == "documents" || name == "shapes" {
			continue
		}
		text, _ := read(name).load()
		if err := c.Do(t.Context(), c.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
