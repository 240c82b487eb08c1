package spider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPutOnConnection: links are put on the connection that the page came from, those that were not
// stored are put again, and DONE follows when all are answered.
func TestPutOnConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Index: "-", Concurrency: 1})
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) {
			for i := range 300 { // more than may be without an answer
				fmt.Fprintf(w, "<a href=/%d>", i)
			}
		})
		d := newDaemon(t, s)
		d.send("1.0.7 doc 192.0.2.1 http://a.test/\n")
		var put []string
		line := ""
		for n := 0; !strings.HasSuffix(line, "DONE 200"); n++ {
			line = d.receive()
			var tag, object string
			if words := strings.SplitN(line, " ", 3); words[0] == "PUT" {
				tag, object = words[1], words[2]
			} else {
				continue
			}
			if n == 0 {
				d.send("2.0.7 other 192.0.2.2 http://b.test/\n") // it waits, and holds up no answers
			}
			switch {
			case n%7 == 0:
				d.send("PUT " + tag + " fail\n")
				continue
			case n%3 == 0:
				d.send("PUT " + tag + " new 17\n")
			default:
				d.send("PUT " + tag + " known\n")
			}
			put = append(put, object)
		}
		if line != "1.0.7 DONE 200" {
			t.Errorf("after the links it says %q", line)
		}
		slices.Sort(put)
		if n := len(slices.Compact(put)); n != 300 || put[0] != `{"url":"http://a.test/0","via":"doc"}` {
			t.Errorf("%d different links were put, as %s; want 300", n, put[0])
		}
		d.conn.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.Stats(); got.LinksTaken != 300 || got.InFlight != 0 {
			t.Errorf("%+v; want 300 links taken and nothing in flight", got)
		}
	})
}

// TestPutLongLink: a link whose PUT is longer than other lines may be is put, too.
func TestPutLongLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Index: "-", Concurrency: 1})
		path := "/?" + strings.Repeat("a=1&", 1900)
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<a href=%s>", path) })
		d := newDaemon(t, s)
		d.send("1.0.7 doc 192.0.2.1 http://a.test/\n")
		words := strings.SplitN(d.receive(), " ", 3)
		var object struct{ URL string }
		if words[0] != "PUT" || json.Unmarshal([]byte(words[2]), &object) != nil || object.URL != "http://a.test"+path {
			t.Fatalf("the spider says %.100q; want a PUT of the link", words)
		}
		d.send("PUT " + words[1] + " new 17\n")
		if line := d.receive(); line != "1.0.7 DONE 200" {
			t.Errorf("after the link it says %q", line)
		}
		d.conn.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.Stats(); got.LinksTaken != 1 || got.LinksRefused != 0 {
			t.Errorf("%+v; want the link taken", got)
		}
	})
}
