package configs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sampleNote is the line of the sample that says what a setting may be.
func sampleNote(s setting) string {
	when := "restart"
	if s.live {
		when = "live"
	}
	return "# Allowed: " + s.allowed + ". [" + when + "]"
}

func TestSampleIsDefault(t *testing.T) {
	got, err := Load("urlserver.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, Default()) {
		live, restart := Changes(got, Default())
		t.Errorf("urlserver.toml differs from Default in %q", append(live, restart...))
	}
	if embedded, err := Parse("sample", []byte(Sample)); err != nil || !reflect.DeepEqual(embedded, got) {
		t.Errorf("Sample is not urlserver.toml: %v", err)
	}
}

func TestSampleSaysEverything(t *testing.T) {
	entries, flaws, _ := scan(Sample)
	if len(flaws) > 0 {
		t.Fatalf("%v", flaws)
	}
	lines := strings.Split(Sample, "\n")
	var keys []string
	for _, e := range entries {
		if e.form != isValue {
			continue
		}
		keys = append(keys, e.path.String())
		above := lines[:e.line-1]
		i := slices.IndexFunc(settings(), func(s setting) bool { return s.name == e.path.String() })
		if i < 0 {
			t.Fatalf("line %d: %s is no setting, or spelt in another way", e.line, e.path)
		}
		if got, want := above[len(above)-1], sampleNote(settings()[i]); got != want {
			t.Errorf("line %d: %s\nwant %s", e.line-1, got, want)
		}
		if prose := above[len(above)-2]; !strings.HasPrefix(prose, "# ") {
			t.Errorf("line %d: nothing says what %s does", e.line, e.path)
		}
	}
	var want []string
	for _, s := range settings() {
		if !isTables(s.name) { // see TestSampleShowsRules, TestCrawls and TestCanonical
			want = append(want, s.name)
		}
	}
	if !slices.Equal(keys, want) {
		t.Errorf("keys of the sample: %q\nwant, in this order: %q", keys, want)
	}
}

// The sample's rules are commented out, since they would be in force; without "#" they are rules.
func TestSampleShowsRules(t *testing.T) {
	head, text, ok := strings.Cut(Sample, "# [[rules]]\n")
	if !ok {
		t.Fatal("the sample has no [[rules]]")
	}
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.name == rulesKey })
	if want := sampleNote(settings()[i]); !strings.HasSuffix(strings.TrimSpace(head), want) {
		t.Errorf("above [[rules]] there is no %s", want)
	}
	text = "[[rules]]\n" + text
	for _, k := range ruleKeys {
		note := "# Allowed: " + k.allowed + ".\n# " + lastPart(k.name) + " = "
		if !strings.Contains(text, note) {
			t.Errorf("the sample lacks %s", note)
		}
	}
	var lines []string
	for line := range strings.Lines(text) {
		if code := strings.TrimPrefix(line, "# "); strings.Contains(code, " = ") &&
			!strings.HasPrefix(code, "Allowed") || strings.Contains(code, "[[") && len(code) < 12 {
			lines = append(lines, code)
		}
	}
	c, err := Parse("rules.toml", []byte(strings.Join(lines, "")))
	if err != nil || len(c.Rules) < 2 {
		t.Errorf("the sample's rules are %d, %v:\n%s", len(c.Rules), err, strings.Join(lines, ""))
	}
}

func TestNoFormShowsAToken(t *testing.T) {
	const token = "Tok3n" // 546f6b336e in hexadecimal
	c := Default()
	c.Spider.Token, c.DocIndex.Token, c.HTTP.Token, c.Frontier.Token, c.Reservation.Token = token, token,
		token, token, token
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "http", c.HTTP, "token", c.HTTP.Token)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"slog": log.String(), "JSON": string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%5s"} {
		shown["config "+verb] = fmt.Sprintf(verb, c)
		shown["part "+verb] = fmt.Sprintf(verb, c.HTTP)
		shown["token "+verb] = fmt.Sprintf(verb, c.HTTP.Token)
		shown["pointer "+verb] = fmt.Sprintf(verb, &c)
	}
	for form, text := range shown {
		for _, leak := range []string{token, "546f6b336e", "546F6B336E", "84 111 107"} {
			if strings.Contains(text, leak) {
				t.Errorf("%s shows the token: %s", form, text)
			}
		}
	}
	if got := strings.Count(c.String(), `token = "***"`); got != 5 {
		t.Errorf("String has %d tokens; want 5:\n%s", got, c)
	}
	if got := strings.Count(Default().String(), `token = ""`); got != 5 {
		t.Errorf("String has %d empty tokens; want 5", got)
	}
}

// What is wrong with a token, or near one, is said without it.
func TestNoMistakeShowsAToken(t *testing.T) {
	for _, text := range []string{
		"spider.token = Tok3n", "spider.token = 'Tok3n", "spider.token = \"\"\"Tok3n",
		"spider.token = \"Tok3n\" x",
		"spider.token \"Tok3n\"", "spider.token: Tok3n", "spider.token = ['Tok3n']",
		"spider.token = {a='Tok3n'}",
		"spider.token = 'Tok3n '", "spider.tokn = 'Tok3n'", "spider.token = \"Tok3n\\q\"",
		"spider.token = 10203Tok3n",
		"docindex.url = 'http://u:Tok3n@h/'", "docindex.url = 'http://h/?Tok3n'",
		"spider.token = 'Tok3n\x01'",
		"[spider\ntoken = 'Tok3n'", "spider.token = Tok3n = 1",
	} {
		_, err := Parse("u.toml", []byte(text))
		if err == nil {
			t.Errorf("Parse(%q) took it", text)
		} else if strings.Contains(err.Error(), "Tok3n") {
			t.Errorf("Parse(%q) shows the token: %v", text, err)
		}
	}
}

func TestTomlString(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    string
		want string
	}{
		{name: "plain", s: "a b", want: `"a b"`},
		{name: "quotes and backslashes", s: `a"b\`, want: `"a\"b\\"`},
		{name: "control characters", s: "\x00\n\x7f", want: `"\u0000\u000A\u007F"`},
		{name: "others stay", s: "é\u2028", want: "\"é\u2028\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tomlString(tc.s); got != tc.want {
				t.Errorf("tomlString(%q) = %s; want %s", tc.s, got, tc.want)
			}
		})
	}
}
