package configs

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// corpus are texts that reach most of the reader.
func corpus() []string {
	return []string{
		"", Default().String(),
		"SPIDER_HOST = 'x'\n[Spider]\ndial = [ \"a:1\", # ]\n'b:2' ]\ntoken = \"t\"\n",
		"http = { listen = \"\",\n token = \"}\" }\nlog.level = \"warn\"\n\"Queue_Len\" = 0x10\n",
		"docindex.path = '''\na'b'''\n[resolver]\nallow_networks = [\"10.0.0.0/8\", \"::1/128\"]\n",
		"[docindex]\nkind = http\nretry = 1s\nulr = \"\n[docindex]\nx = [ [ { a = 1 } ]",
		"[[a]]\nb = { c.d = 1979-05-27T07:32:00Z, e = [ nan, inf, 1e3 ] }\n\"\"\"\n",
		"Queue_Len = 5\nqueue_LEN = 6\nhttp.listen = \":80\"\nspider.tls_ca = \"\\u0041\\q\"\n\x01",
		"[docindex]\nrefetch_after = { ok = \"168h\", gone = \"never\", error = \"1h\" " +
			"}\n[docindex.refetch_after]\nok = 5",
		"[[rules]]\nhosts = [ \"*.Example.org\",\n'[::1]' ]\nper_sec = 1\n[[Rules]]\nnetworks = " +
			"[\"10.0.0.0/8\"]\nblock = true\n[rules.x]\ny = 1\n",
		"rules = [{hosts = [\"*\"], block = false}, {networks = [\"::/0\"], group = \"g\", concurrent = " +
			"2}]\n[rules]\n[[rules]]\nhosts = {}\n",
		"Req_Host_Per_Sec = 1e-6\r\nTimeout_Spider_Status = 86400\r\nallow_insecure = true\r\n",
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range corpus() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("u.toml", data)
		if err != nil {
			checkError(t, data, err)
			return
		}
		if err := toml.Unmarshal(data, &map[string]any{}); err != nil {
			t.Errorf("took what is no TOML: %v", err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("took what is not valid: %v", err)
		}
		again, err := Parse("again.toml", []byte(c.toml(func(s setting) string { return s.text(&c) })))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%#v\ncomes back as %#v, %v", c, again, err)
		}
		if _, err := Parse("shown.toml", []byte(c.String())); err != nil {
			t.Errorf("String is no settings text: %v", err)
		}
	})
}

// checkError holds err to the form that is promised.
func checkError(t *testing.T, data []byte, err error) {
	t.Helper()
	all, ok := errors.AsType[*Error](err)
	if !ok || len(all.Mistakes) == 0 {
		t.Fatalf("%#v; want an *Error with mistakes", err)
	}
	last, lines := 1, strings.Count(string(data), "\n")+1
	for _, m := range all.Mistakes {
		if m.Line < last || m.Line > lines {
			t.Errorf("%v: line %d after %d in a file of %d", m, m.Line, last, lines)
		}
		last = m.Line
		if s := m.String(); strings.ContainsAny(s, "\n\r\x00") || len(s) > 4096 {
			t.Errorf("%q breaks its line", s)
		}
		if m.File != "u.toml" || m.Problem == "" {
			t.Errorf("%#v lacks something", m)
		}
	}
}

// What the scanner and single entries give is what the toml package makes of
// the whole text.
func FuzzScan(f *testing.F) {
	for _, text := range corpus() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := newReader("u.toml")
		if !r.isText([]byte(text)) || strings.HasPrefix(text, "\ufeff\ufeff") {
			return
		}
		var whole map[string]any
		if toml.Unmarshal([]byte(text), &whole) != nil {
			return
		}
		entries, flaws, _ := scan(text)
		if len(flaws) > 0 {
			if slices.ContainsFunc(flaws, func(f flaw) bool {
				return !strings.HasPrefix(f.what, tooDeep) &&
					!strings.HasPrefix(f.what, "no key has so many parts")
			}) {
				t.Errorf("%q: flaws %v in what is TOML", text, flaws)
			}
			return
		}
		want := map[string]string{}
		scalars(whole, nil, want)
		if got := scalarsOf(t, entries, text); !maps.Equal(got, want) {
			t.Errorf("%q: entries %q; want %q", text, got, want)
		}
	})
}

// scalars gathers what is no table and no list of tables, by its path.
func scalars(table map[string]any, path toml.Key, into map[string]string) {
	for k, v := range table {
		here := append(path[:len(path):len(path)], k)
		switch v := v.(type) {
		case map[string]any:
			scalars(v, here, into)
		case []any, []map[string]any:
		default:
			into[here.String()] = fmt.Sprint(v)
		}
	}
}

// scalarsOf is the same from entries, each of which must stand on its line.
func scalarsOf(t *testing.T, entries []entry, text string) map[string]string {
	t.Helper()
	lines := strings.Split(text, "\n")
	got := map[string]string{}
	inList := func(e entry) bool {
		return slices.ContainsFunc(entries, func(l entry) bool {
			return l.form == isList && len(l.path) <= len(e.path) &&
				slices.Equal(l.path, e.path[:len(l.path)])
		})
	}
	for _, e := range entries {
		if first, _, _ := strings.Cut(e.raw, "\n"); !strings.Contains(lines[e.line-1],
			strings.TrimRight(first, "\r")) {
			t.Errorf("%q: %s is not on line %d", text, written(e), e.line)
		}
		if e.form != isValue || inList(e) {
			continue
		}
		v, _, err := decode(e)
		if err != nil {
			t.Errorf("%q: %s: %v", text, written(e), err)
		}
		switch v.(type) {
		case []any, []map[string]any:
		default:
			got[e.path.String()] = fmt.Sprint(v)
		}
	}
	return got
}
