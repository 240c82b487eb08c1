package configs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// written is an entry in short: "line form path = value".
func written(e entry) string {
	form := map[form]string{isValue: "value", isTable: "table", isInline: "inline", isList: "list"}[e.form]
	return strings.TrimSuffix(fmt.Sprintf("%d %s %s = %s", e.line, form, e.path, e.raw), " = ")
}

func TestScan(t *testing.T) {
	for _, tc := range []struct {
		name string
		text string
		want []string
	}{
		{name: "lines", text: "\n\na=1\r\n\n  b . c\t= 2 # d = 3\ne=4",
			want: []string{"3 value a = 1", "5 value b.c = 2", "6 value e = 4"}},
		{name: "tables", text: "[a]\nb=1\n[ c . \"d.e\" ] # f\ng=2\n[[h]]\ni=3", want: []string{
			"1 table a", "2 value a.b = 1", `3 table c."d.e"`, `4 value c."d.e".g = 2`, "5 list h",
			"6 value h.i = 3"}},
		{name: "brackets and hashes in strings",
			text: "a = \"[#\\\"]\"\nb = '#\\'\nc = [ \"]\" ] # ]\nd = 1", want: []string{
				`1 value a = "[#\"]"`, `2 value b = '#\'`, `3 value c = [ "]" ]`, "4 value d = 1"}},
		{name: "long strings", text: "a = \"\"\"\nb = 1\n\\\"\"\"\"\"\"\nc = '''\n[d]'''''\ne=1",
			want: []string{
				"1 value a = \"\"\"\nb = 1\n\\\"\"\"\"\"\"", "4 value c = '''\n[d]'''''", "6 value e = 1"}},
		{name: "a newline in a string", text: "a = [\n 1, # ]\n [ 2, \"\n\" ],\n]\nb = 1", want: nil},
		{name: "lists", text: "a = [\n 1, # ]\n [ 2, '3' ],\n]\nb = 1", want: []string{
			"1 value a = [\n 1, # ]\n [ 2, '3' ],\n]", "5 value b = 1"}},
		{name: "inline tables",
			text: "a = { b = 1,\n c.d = [ {e = 2} ], # }\n f = { g = '}' } }\nh = 1979-05-27 07:32:00\n",
			want: []string{
				"1 inline a", "1 value a.b = 1", "2 value a.c.d = [ {e = 2} ]", "3 inline a.f",
				"3 value a.f.g = '}'", "4 value h = 1979-05-27 07:32:00"}},
		{name: "quoted keys", text: "\"a=b\" = 1\n'c#d'.\"e\\\"f\" = 2",
			want: []string{`1 value "a=b" = 1`, `2 value "c#d"."e\"f" = 2`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entries, flaws, whole := scan(tc.text)
			if tc.want == nil {
				if len(flaws) == 0 || whole {
					t.Errorf("scan(%q) has no flaw", tc.text)
				}
				return
			}
			var got []string
			for _, e := range entries {
				got = append(got, written(e))
			}
			if !slices.Equal(got, tc.want) || len(flaws) > 0 || !whole {
				t.Errorf("scan(%q) = %q, flaws %v, whole %v; want %q", tc.text, got, flaws, whole, tc.want)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		most int
		want int
	}{
		{a: "", b: "", most: 3, want: 0},
		{a: "url", b: "url", most: 3, want: 0},
		{a: "url", b: "ulr", most: 3, want: 1},
		{a: "listen", b: "lsten", most: 3, want: 1},
		{a: "listen", b: "lissten", most: 3, want: 1},
		{a: "kitten", b: "sitting", most: 9, want: 3},
		{a: "kitten", b: "sitting", most: 2, want: 2},
		{a: "abc", b: "xyz", most: 2, want: 2},
		{a: "a", b: "abcdef", most: 3, want: 3},
		{a: strings.Repeat("a", 1<<20), b: "a", most: 4, want: 4},
	} {
		t.Run(fmt.Sprintf("%.9s to %.9s", tc.a, tc.b), func(t *testing.T) {
			for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
				if got := distance(pair[0], pair[1], tc.most); got != tc.want {
					t.Errorf("distance(%.20q, %.20q, %d) = %d; want %d", pair[0], pair[1], tc.most,
						got, tc.want)
				}
			}
		})
	}
}
