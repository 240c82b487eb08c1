package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocumentHasTheLimits(t *testing.T) {
	text := document(t)
	for _, want := range []string{
		fmt.Sprintf("a line over %d bytes", MaxLine), fmt.Sprintf("document: 1 to %d characters", MaxDocID),
		fmt.Sprintf("without fragment; 1 to %d characters", MaxURL),
		fmt.Sprintf("| `TOKEN` | 1 to %d characters", MaxToken),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("PROTOCOL.md does not say %q", want)
		}
	}
}

// Each line of the document's conversation is one that the parsers take.
func TestDocumentsConversation(t *testing.T) {
	_, text, _ := strings.Cut(document(t), "## A conversation")
	_, text, _ = strings.Cut(text, "```\n")
	text, _, _ = strings.Cut(text, "```")
	open := map[string]bool{}
	for line := range strings.Lines(text) {
		if err := converse(strings.TrimSuffix(line, "\n"), open); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	if strings.Count(text, "\n") < 8 || len(open) != 0 {
		t.Errorf("%q leaves open %v; want eight lines and none open", text, open)
	}
}

// converse takes one line of a conversation. open holds what was sent and is not done yet.
func converse(line string, open map[string]bool) error {
	said, fromSpider := strings.CutPrefix(line, "> ")
	if !fromSpider {
		f, err := ParseFetch([]byte(strings.TrimPrefix(line, "< ")))
		open[string(f.Trans)] = true
		return err
	}
	if _, ok := ParseAuth([]byte(said)); ok {
		return nil
	}
	s, err := ParseStatus([]byte(said))
	id := string(AppendTrans(nil, s.Trans))
	if err == nil && !open[id] {
		err = fmt.Errorf("transaction %s is not open", id)
	}
	if s.Verb == Done {
		delete(open, id)
	}
	return err
}
