package docindex

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzNaming compares what is read without package json with what that reads.
func FuzzNaming(f *testing.F) {
	for _, text := range []string{"", "{}", `{"appid":["a"],"spiderid":["s"]}`, `{"appid":["a","b"],"expires":["7"]}`,
		`{"appid":[]}`, `{"appid":[""],"x":["y"]}`, `{"spiderid":["s"],"spiderid":["t"]}`, `{"appid":["a"]`,
		`{"appid":["a"]}x`, `{"appid":["a",]}`, `{"appid":["a"],}`, `{"appid":"a"}`, `{"appid":null}`, `{"appid":[null]}`,
		`{"appid":["\u003c"]}`, `{"appid":["<"]}`, `{"appid":["é"]}`, ` {"appid":["a"]}`, `{,"appid":["a"]}`, `{"appid":["a"]]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { compareNaming(t, text) })
}

func compareNaming(t *testing.T, text []byte) (plain bool) {
	t.Helper()
	m := DecodeMetadata(text)
	n := namingOf(text)
	if string(n.spider) != first(m["spiderid"]) || string(n.app) != first(m["appid"]) ||
		string(n.expires) != first(m["expires"]) {
		t.Errorf("%q: %q, %q, %q; package json reads %q", text, n.spider, n.app, n.expires, m)
	}
	if got, want := n.owner(), ownerText(first(m["spiderid"]), first(m["appid"])); string(got) != string(want) {
		t.Errorf("the owner in %q is %s; want %s", text, got, want)
	}
	if again := EncodeMetadata(m); isCompact(text) && string(again) != string(text) {
		t.Errorf("%q counts as compact; package json writes %q", text, again)
	}
	return n.plain
}

// Random texts of what metadata are made of are read as package json reads them.
func TestNamingAsJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"{", "}", "[", "]", `"appid":[`, `"spiderid":[`, `"expires":[`, `"x":[`, `"a"`, `"7"`, `""`, ",",
		`"\n"`, `"ü"`, "\"\xff\"", "null", " "}
	plain := 0
	for range 200_000 {
		var text strings.Builder
		text.WriteString("{")
		for range rng.IntN(4) {
			text.WriteString(parts[4+rng.IntN(4)] + parts[8+rng.IntN(3)] + "]" + parts[11*rng.IntN(2)+rng.IntN(2)])
		}
		for range rng.IntN(3) {
			text.WriteString(parts[rng.IntN(len(parts))])
		}
		whole := strings.NewReplacer("]{", "],", "],}", "]}", "]}}", "]}").Replace(text.String() + "}")
		if compareNaming(t, []byte(whole)) {
			plain++
		}
		if t.Failed() {
			return
		}
	}
	if plain < 10_000 {
		t.Errorf("%d texts were read without package json; the test wants more", plain)
	}
}
