package docindex_test

import (
	"reflect"
	"testing"

	"urlserver/docindex"
)

func TestMetadata(t *testing.T) {
	for _, c := range []struct {
		name string
		m    map[string][]string
		text string
	}{
		{name: "none"},
		{name: "sorted", m: map[string][]string{"b": {"2", ""}, "a": {"1"}}, text: `{"a":["1"],"b":["2",""]}`},
		{name: "no values", m: map[string][]string{"a": {}}, text: `{"a":[]}`},
		{name: "escapes", m: map[string][]string{"\"\n": {"\x00<ü"}}, text: `{"\"\n":["\u0000\u003cü"]}`},
	} {
		text := docindex.EncodeMetadata(c.m)
		if string(text) != c.text {
			t.Errorf("%s: encoded is %s; want %s", c.name, text, c.text)
		}
		if got := docindex.DecodeMetadata(text); !reflect.DeepEqual(got, c.m) {
			t.Errorf("%s: decoded is %q; want %q", c.name, got, c.m)
		}
	}
	if got := docindex.EncodeMetadata(map[string][]string{"a": nil}); string(got) != `{"a":[]}` {
		t.Errorf("a nil list is %s; want an empty one", got)
	}
	for _, strange := range []string{"{", "[]", `{"a":1}`} {
		if got := docindex.DecodeMetadata([]byte(strange)); got != nil {
			t.Errorf("%s is read as %q; want nothing", strange, got)
		}
	}
}

func TestPriorityOf(t *testing.T) {
	for text, want := range map[string]int32{
		"7": 7, "-7": -7, "": 0, "x": 0, "1.5": 0, "99999999999": 1<<31 - 1, "-99999999999": -1 << 31,
	} {
		if got := docindex.PriorityOf(map[string][]string{"priority": {text, "9"}}); got != want {
			t.Errorf("priority %q is %d; want %d", text, got, want)
		}
	}
	if got := docindex.PriorityOf(map[string][]string{"priority": {}}) + docindex.PriorityOf(nil); got != 0 {
		t.Errorf("priority of nothing is %d", got)
	}
}
