package protocol

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestBack(t *testing.T) {
	back := func(seconds int) Status {
		return Status{Trans: trans123, Verb: Back, RetryAfter: NoRetryAfter, Seconds: seconds}
	}
	for line, want := range map[string]Status{
		"1.2.3 BACK": back(0), "1.2.3 BACK 0": back(0), "1.2.3 BACK 017": back(17),
		"1.2.3 BACK 99999999999999999999": back(MaxRetryAfter),
	} {
		if got, err := ParseStatus([]byte(line)); got != want || err != nil {
			t.Errorf("ParseStatus(%q) = %+v, %v; want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"1.2.3 BACK ", "1.2.3 BACK  1", "1.2.3 BACK 1 ", "1.2.3 BACK 1 2", "1.2.3 BACK -1",
		"1.2.3 BACK soon"} {
		if got, err := ParseStatus([]byte(line)); !errors.Is(err, ErrStatusSeconds) || got != (Status{}) {
			t.Errorf("ParseStatus(%q) = %+v, %v; want %v", line, got, err, ErrStatusSeconds)
		}
	}
	if got := string(AppendBack(AppendBack(nil, []byte("a"), 0), []byte("b"), 60)); got != "a BACK\nb BACK 60\n" {
		t.Errorf("%q", got)
	}
}

func TestDetails(t *testing.T) {
	done := func(retry int, d Details) Status {
		return Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 200, RetryAfter: retry, Details: d}
	}
	for line, want := range map[string]Status{
		"changed=1":                       done(NoRetryAfter, Details{HasChanged: true, Changed: true}),
		"changed=0":                       done(NoRetryAfter, Details{HasChanged: true}),
		"7 changed=0 bytes=12":            done(7, Details{HasChanged: true, Bytes: 12}),
		"bytes=99999999999999999999":      done(NoRetryAfter, Details{Bytes: MaxBytes}),
		"location=http://a.example/?a=b":  done(NoRetryAfter, Details{Location: "http://a.example/?a=b"}),
		"x=1 other= Changed=1 bytes=1":    done(NoRetryAfter, Details{Bytes: 1}),
		"changed=2 bytes=-1 location=":    done(NoRetryAfter, Details{}),
		"changed=00 bytes= =x=location=y": {},
	} {
		got, err := ParseStatus([]byte("1.2.3 DONE 200 " + line))
		if got != want || (err == nil) != (want != Status{}) {
			t.Errorf("ParseStatus(%q) = %+v, %v; want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"1 2 changed=1", "changed=1 7", "changed=1 ", "changed=1  bytes=1", "7 changed",
		"bytes=\x01", "location=http://a b", "=1"} {
		if got, err := ParseStatus([]byte("1.2.3 DONE 200 " + line)); err == nil {
			t.Errorf("ParseStatus(%q) = %+v", line, got)
		}
	}
	longest := "http://a.example/" + strings.Repeat("x", MaxURL-17)
	for _, d := range []Details{{}, {HasChanged: true, Bytes: 3, Location: "http://a.example/"}, {Location: longest},
		{HasChanged: true, Changed: true, Bytes: MaxBytes, Location: longest}} {
		line := AppendDoneWith([]byte("x\n"), []byte("1.2.3"), 301, 7, d)[2:]
		got, err := ParseStatus(line[:len(line)-1])
		if len(line) > MaxLine || err != nil || got.Details != d {
			t.Errorf("%d bytes of details came back as %d bytes, %v", len(d.Location), len(got.Location), err)
		}
	}
	line := AppendDoneWith(nil, []byte(strings.Repeat("1", 200)), 301, MaxRetryAfter, Details{Location: longest})
	if len(line) > MaxLine || bytes.Contains(line, []byte("location")) {
		t.Errorf("a location that does not fit makes a line of %d bytes", len(line))
	}
	if got := string(AppendDoneWith(nil, []byte("a"), NoStatus, 7, Details{Bytes: 3})); got != "a DONE\n" {
		t.Errorf("without a status: %q", got)
	}
}

func TestPutAnswers(t *testing.T) {
	for r, want := range map[PutResult]string{PutNew: "new", PutKnown: "known", PutInvalid: "invalid",
		PutOutOfScope: "out_of_scope", PutFail: "fail"} {
		for _, id := range []string{"", "doc-1"} {
			line := AppendPutAnswer(nil, []byte("~tag!"), r, []byte(id))
			if wire := "PUT ~tag! " + strings.TrimSpace(want+" "+id) + "\n"; string(line) != wire {
				t.Errorf("%v is written as %q; want %q", r, line, wire)
			}
			tag, got, docID, err := ParsePutAnswer(line[:len(line)-1])
			if string(tag) != "~tag!" || got != r || string(docID) != id || err != nil || !IsAnswer(line) {
				t.Errorf("%q came back as %q %v %q, %v", line, tag, got, docID, err)
			}
		}
	}
	for _, line := range []string{"", "PUT", "PUT a", "PUT a ", "PUT a NEW", "PUT a new ", "PUT a new x y",
		"COUNT a new",
		"1.0.1 2 192.0.2.1 http://a.example/"} {
		if _, _, _, err := ParsePutAnswer([]byte(line)); !errors.Is(err, ErrAnswer) {
			t.Errorf("%q: %v; want %v", line, err, ErrAnswer)
		}
	}
	if IsAnswer([]byte("1.0.1 2 192.0.2.1 http://a.example/")) || IsAnswer(nil) {
		t.Error("a line to fetch, or none, counts as an answer")
	}
}

func TestCountAnswers(t *testing.T) {
	c := &Counts{Scheduled: 1, InFlight: 0, Later: math.MaxInt32 + 1, Completed: 4}
	line := AppendCountAnswer(nil, []byte("t"), c)
	if string(line) != "COUNT t 1 0 2147483648 4\n" {
		t.Errorf("%q", line)
	}
	tag, got, known, err := ParseCountAnswer(line[:len(line)-1])
	if string(tag) != "t" || got != *c || !known || err != nil {
		t.Errorf("%q came back as %q %+v %v, %v", line, tag, got, known, err)
	}
	line = AppendCountAnswer(nil, []byte("t"), nil)
	_, got, known, err = ParseCountAnswer(line[:len(line)-1])
	if string(line) != "COUNT t fail\n" || known || err != nil || got != (Counts{}) {
		t.Errorf("%q came back as %+v %v, %v", line, got, known, err)
	}
	for _, line := range []string{"", "COUNT t", "COUNT t 1 2 3", "COUNT t 1 2 3 4 5", "COUNT t 1 2 3 4 ",
		"COUNT t 1 2 3 x",
		"COUNT t  1 2 3 4", "PUT t 1 2 3 4", "COUNT t FAIL"} {
		if _, _, _, err := ParseCountAnswer([]byte(line)); !errors.Is(err, ErrAnswer) {
			t.Errorf("%q: %v; want %v", line, err, ErrAnswer)
		}
	}
}

// FuzzVerbs: a line is of one verb at most, what is taken is what a strict writer would have
// written, and may be a spider's first line.
func FuzzVerbs(f *testing.F) {
	for _, s := range []string{"ROOM 16", "ROOM 99999999999", `PUT t {"url":"http://a.example/"}`, "PUT t ", "COUNT t",
		"COUNT t crawl", "1.2.3 BACK", "1.2.3 BACK 60",
		"1.2.3 DONE 301 7 changed=1 bytes=3 location=http://a.example/ x=y",
		"AUTH x", "PUT /x HTTP/1.1", "PAYLOAD", "PAYLOAD ", `PUT t {"url":"http://a.example/","payload":"aGk="}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		verbs := 0
		if s, err := ParseStatus(line); err == nil {
			verbs++
			checkStatusLine(t, string(line), s)
		}
		if n, ok := ParseRoom(line); ok {
			verbs++
			if want := AppendRoom(nil, n); n < MaxRoom && !bytes.Equal(bytes.TrimLeft(line[5:], "0"),
				bytes.TrimLeft(want[5:len(want)-1], "0")) {
				t.Fatalf("%q parsed as %d", line, n)
			}
		}
		if tag, object, ok := ParsePut(line); ok {
			verbs++
			if want := AppendPut(nil, tag, object); string(want) != string(line)+"\n" || !ValidTag(tag) {
				t.Fatalf("%q parsed as %q %q", line, tag, object)
			}
		}
		if tag, crawl, ok := ParseCount(line); ok {
			verbs++
			if want := AppendCount(nil, tag, crawl); string(want) != string(line)+"\n" || !ValidTag(tag) {
				t.Fatalf("%q parsed as %q %q", line, tag, crawl)
			}
		}
		if ParsePayload(line) {
			verbs++
			if want := AppendPayload(nil); string(want) != string(line)+"\n" {
				t.Fatalf("%q is taken for PAYLOAD", line)
			}
			line = append(line, '\n') // without its line end it may be a longer word
		}
		if _, ok := ParseAuth(line); ok {
			verbs++
		}
		if _, ok := ParseSpider(line); ok {
			verbs++
		}
		if verbs > 1 {
			t.Fatalf("%q is %d verbs", line, verbs)
		}
	})
}
