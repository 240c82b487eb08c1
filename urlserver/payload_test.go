package urlserver

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex/memory"
	"urlserver/protocol"
)

// TestPayload puts documents with and without a payload on the line protocol. A spider that has said
// PAYLOAD gets them in a fifth field, also after another one gave them back; others get four fields.
func TestPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		b := (&bubble{t: t, store: store}).start(nil, Parts{Index: store, Store: store})
		defer b.stopped()
		large := bytes.Repeat([]byte{0xfb, 0xff, 0}, protocol.MaxPayload/3)
		plain := b.spider("ROOM 0")
		for i, payload := range []string{"hi", "", string(large)} {
			plain.say(`PUT %d {"url":"http://10.0.0.%d/","doc_id":"d%d","payload":%q}`, i, i, i,
				base64.StdEncoding.EncodeToString([]byte(payload)))
			if got, err := plain.in.ReadString('\n'); err != nil || got != fmt.Sprintf("PUT %d new d%d\n", i, i) {
				t.Fatalf("%q, %v", got, err)
			}
		}
		plain.say("ROOM 10")
		for range 3 {
			line, err := plain.in.ReadString('\n')
			f, bad := protocol.ParseFetch([]byte(strings.TrimSuffix(line, "\n")))
			if err != nil || bad != nil {
				t.Fatalf("%.80q, %v, %v; want four fields", line, err, bad)
			}
			plain.say("%s BACK", f.Trans)
		}
		plain.say("ROOM 0")
		s := b.spider("PAYLOAD", "ROOM 10")
		want := map[string][]byte{"d0": []byte("hi"), "d1": nil, "d2": large}
		for len(want) > 0 {
			line, err := s.in.ReadString('\n')
			line = strings.TrimSuffix(line, "\n")
			f, payload, bad := protocol.ParseFetchWith([]byte(line))
			if err != nil || bad != nil || strings.Count(line, " ") != 4 {
				t.Fatalf("%.80q, %v, %v; want five fields", line, err, bad)
			}
			if id := string(f.DocID); !bytes.Equal(payload, want[id]) || id == "d1" && !strings.HasSuffix(line, " -") {
				t.Errorf("%s has a payload of %d bytes; want %d", id, len(payload), len(want[id]))
			}
			delete(want, string(f.DocID))
			s.say("%s DONE 200", f.Trans)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if st, _ := b.d.Status(t.Context()); st.BadLines != 0 || st.Slots.Held != 0 {
			t.Errorf("%d bad lines, %d held", st.BadLines, st.Slots.Held)
		}
		plain.conn.Close()
		s.conn.Close()
	})
}
