package clihelp

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc é 世":     "a\tb\nc é 世",
		"\x1b]0;x\x07":    `\u001b]0;x\u0007`,
		"a\u009b31mb\x7f": `a\u009b31mb\u007f`,
		"a\r\x00":         `a\u000d\u0000`,
		"a\x9bb\xc2":      "a\ufffdb\ufffd",
	} {
		if got := Harmless(text); got != want {
			t.Errorf("Harmless(%q) = %q; want %q", text, got, want)
		}
	}
}

// TestPlain writes byte by byte, which splits characters.
func TestPlain(t *testing.T) {
	var out strings.Builder
	p := &Plain{W: &out}
	const text = "{\"a\":\"é世\u009b😀\x7f\"}\n"
	for i := range len(text) {
		if n, err := p.Write([]byte(text[i : i+1])); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := `{"a":"é世\u009b😀\u007f"}` + "\n"; out.String() != want {
		t.Errorf("written is %q; want %q", out.String(), want)
	}
	var was, is map[string]string
	if json.Unmarshal([]byte(text), &was) != nil || json.Unmarshal([]byte(out.String()), &is) != nil ||
		was["a"] != is["a"] {
		t.Errorf("the JSON says %q; want %q", is, was)
	}
}
