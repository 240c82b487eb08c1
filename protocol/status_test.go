package protocol

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

var trans123 = Trans{Slot: 1, Active: 2, Generation: 3}

func TestParseStatus(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       Status
	}{
		{
			name: "working", line: "1.2.3 WORKING",
			want: Status{Trans: trans123, Verb: Working, RetryAfter: NoRetryAfter},
		}, {
			name: "done", line: "1.2.3 DONE",
			want: Status{Trans: trans123, Verb: Done, RetryAfter: NoRetryAfter},
		}, {
			name: "with status", line: "1.2.3 DONE 200",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 200, RetryAfter: NoRetryAfter},
		}, {
			name: "no answer", line: "1.2.3 DONE 0",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 0, RetryAfter: NoRetryAfter},
		}, {
			name: "no answer, as curl writes it", line: "1.2.3 DONE 000",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 0, RetryAfter: NoRetryAfter},
		}, {
			name: "largest status", line: "1.2.3 DONE 999",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 999, RetryAfter: NoRetryAfter},
		}, {
			name: "with retry-after", line: "1.2.3 DONE 503 120",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 503, RetryAfter: 120},
		}, {
			name: "retry at once", line: "1.2.3 DONE 429 0",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 429, RetryAfter: 0},
		}, {
			name: "largest retry-after", line: "1.2.3 DONE 429 2147483647",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 429, RetryAfter: MaxRetryAfter},
		}, {
			name: "retry-after above the largest", line: "1.2.3 DONE 429 2147483648",
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 429, RetryAfter: MaxRetryAfter},
		}, {
			name: "retry-after above all integers", line: "1.2.3 DONE 429 " + strings.Repeat("9", 5000),
			want: Status{Trans: trans123, Verb: Done, HasStatus: true, Code: 429, RetryAfter: MaxRetryAfter},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseStatus([]byte(c.line))
			if err != nil || got != c.want {
				t.Errorf("ParseStatus(%.60q) = %+v, %v; want %+v", c.line, got, err, c.want)
			}
		})
	}
}

func TestParseStatusRefuses(t *testing.T) {
	for _, c := range []struct {
		want  error
		lines []string
	}{
		{want: ErrStatusTrans, lines: []string{
			"", " ", "DONE", "WORKING", " 1.2.3 DONE", "1.2 DONE", "01.2.3 DONE", "1.2.3\tDONE",
			"AUTH secret", "1.2.3DONE",
			"GET / HTTP/1.1", "\x16\x03\x01", "1.2.3.4 DONE",
		}},
		{want: ErrStatusVerb, lines: []string{
			"1.2.3", "1.2.3 ", "1.2.3  DONE", "1.2.3 done", "1.2.3 Done", "1.2.3 DONEX", "1.2.3 DONE\r", "1.2.3 WORK",
			"1.2.3 DONE\t200", "1.2.3 WORKING\x00", "1.2.3 ＤＯＮＥ",
		}},
		{want: ErrStatusFields, lines: []string{
			"1.2.3 WORKING ", "1.2.3 WORKING 200", "1.2.3 DONE 200 1 ", "1.2.3 DONE 200 1 2", "1.2.3 DONE 200  1",
		}},
		{want: ErrStatusCode, lines: []string{
			"1.2.3 DONE ", "1.2.3 DONE  200", "1.2.3 DONE 1000", "1.2.3 DONE -1", "1.2.3 DONE +200", "1.2.3 DONE 20x",
			"1.2.3 DONE 0200", "1.2.3 DONE 200\r", "1.2.3 DONE 99999999999999999999", "1.2.3 DONE OK",
			"1.2.3 DONE 2.0",
		}},
		{want: ErrStatusRetryAfter, lines: []string{
			"1.2.3 DONE 200 ", "1.2.3 DONE 200 -1", "1.2.3 DONE 200 1.5", "1.2.3 DONE 200 1s", "1.2.3 DONE 200 +1",
			"1.2.3 DONE 200 99999999999999999999x", "1.2.3 DONE 503 soon",
		}},
	} {
		for _, line := range c.lines {
			got, err := ParseStatus([]byte(line))
			if !errors.Is(err, c.want) || got != (Status{}) {
				t.Errorf("ParseStatus(%q) = %+v, %v; want %v", line, got, err, c.want)
			}
		}
	}
}

func TestAppendStatusLines(t *testing.T) {
	trans := []byte("opaque!")
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{name: "working", got: AppendWorking(nil, trans), want: "opaque! WORKING\n"},
		{name: "done", got: AppendDone(nil, trans, 200, NoRetryAfter), want: "opaque! DONE 200\n"},
		{name: "no answer", got: AppendDone(nil, trans, 0, NoRetryAfter), want: "opaque! DONE 0\n"},
		{name: "retry-after", got: AppendDone(nil, trans, 503, 7), want: "opaque! DONE 503 7\n"},
		{name: "retry at once", got: AppendDone(nil, trans, 429, 0), want: "opaque! DONE 429 0\n"},
		{name: "no status", got: AppendDone(nil, trans, NoStatus, NoRetryAfter), want: "opaque! DONE\n"},
		{name: "retry-after without status", got: AppendDone(nil, trans, NoStatus, 7), want: "opaque! DONE\n"},
		{name: "status too large", got: AppendDone(nil, trans, 1200, NoRetryAfter), want: "opaque! DONE 999\n"},
		{name: "behind what is there", got: AppendWorking([]byte("x\n"), trans), want: "x\nopaque! WORKING\n"},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s: got %q; want %q", c.name, c.got, c.want)
		}
	}
}

func TestVerbString(t *testing.T) {
	if got := fmt.Sprint(Working, Done, Back); got != "WORKING DONE BACK" {
		t.Errorf("verbs print as %q", got)
	}
}

func TestAuth(t *testing.T) {
	longest := strings.Repeat("t", MaxToken)
	for _, token := range []string{"x", "s3cr3t~!", longest} {
		line := AppendAuth(nil, []byte(token))
		got, ok := ParseAuth(line[:len(line)-1])
		if !ok || string(got) != token || line[len(line)-1] != '\n' {
			t.Errorf("token of %d bytes came back as %.20q, %v", len(token), got, ok)
		}
	}
	for _, line := range []string{
		"", "AUTH", "AUTH ", "auth x", "AUTH  x", "AUTH x ", "AUTH x y", "AUTH\tx", "AUTH ü", "AUTH \x00",
		"1.2.3 DONE", "AUTHx",
		"AUTH x\r", "AUTH " + longest + "t",
	} {
		if got, ok := ParseAuth([]byte(line)); ok || got != nil {
			t.Errorf("ParseAuth(%.20q) = %.20q, %v; want no token", line, got, ok)
		}
	}
}

func TestSpider(t *testing.T) {
	longest := strings.Repeat("s", MaxSpiderID)
	for _, id := range []string{"x", "link", "a,b~!", longest} {
		line := AppendSpider(nil, []byte(id))
		got, ok := ParseSpider(line[:len(line)-1])
		if !ok || string(got) != id || line[len(line)-1] != '\n' {
			t.Errorf("spiderid %q came back as %q, %v", id, got, ok)
		}
	}
	for _, line := range []string{
		"", "SPIDER", "SPIDER ", "spider x", "SPIDER  x", "SPIDER x ", "SPIDER x y", "SPIDER\tx",
		"SPIDER ü", "SPIDER \x00", "SPIDERx",
		"SPIDER x\r", "SPIDER " + longest + "s", "AUTH x",
	} {
		if got, ok := ParseSpider([]byte(line)); ok || got != nil {
			t.Errorf("ParseSpider(%q) = %q, %v; want none", line, got, ok)
		}
	}
}

// FuzzStatus: what is taken is exactly what a strict writer would have written, and what is written
// is taken.
func FuzzStatus(f *testing.F) {
	for _, s := range []string{"1.2.3 WORKING", "1.2.3 DONE", "0.0.0 DONE 200",
		"4294967295.1.1 DONE 503 99999999999", "AUTH x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := ParseStatus(line)
		if err != nil {
			if s != (Status{}) {
				t.Fatalf("ParseStatus(%q) = %+v with %v", line, s, err)
			}
			return
		}
		checkStatusLine(t, string(line), s)
	})
}

// checkStatusLine compares the fields of line, cut apart by other means, with what the parser made
// of them.
func checkStatusLine(t *testing.T, line string, s Status) {
	t.Helper()
	fields := strings.Split(line, " ")
	if want := string(AppendTrans(nil, s.Trans)); fields[0] != want || fields[1] != s.Verb.String() {
		t.Fatalf("%q parsed as %q %v", line, want, s.Verb)
	}
	if s.Verb == Back {
		if len(fields) > 3 || s.Seconds > 0 && len(fields) < 3 || s.Seconds < 0 || s.Seconds > MaxRetryAfter {
			t.Fatalf("%q parsed as %+v", line, s)
		}
		checkWrittenAgain(t, []byte(fields[0]), s)
		return
	}
	for len(fields) > 3 && strings.Contains(fields[len(fields)-1], "=") {
		fields = fields[:len(fields)-1]
	}
	if len(fields) > 4 || s.Verb == Working && len(fields) > 2 || s.HasStatus != (len(fields) > 2) {
		t.Fatalf("%q of %d fields parsed as %+v", line, len(fields), s)
	}
	if s.HasStatus && fmt.Sprintf("%0*d", len(fields[2]), s.Code) != fields[2] {
		t.Fatalf("status of %q parsed as %d", line, s.Code)
	}
	if (s.RetryAfter == NoRetryAfter) != (len(fields) < 4) || s.RetryAfter < NoRetryAfter ||
		s.RetryAfter > MaxRetryAfter {
		t.Fatalf("retry-after of %q parsed as %d", line, s.RetryAfter)
	}
	if len(fields) == 4 && s.RetryAfter < MaxRetryAfter &&
		fmt.Sprintf("%0*d", len(fields[3]), s.RetryAfter) != fields[3] {
		t.Fatalf("retry-after of %q parsed as %d", line, s.RetryAfter)
	}
	checkWrittenAgain(t, []byte(fields[0]), s)
}

func checkWrittenAgain(t *testing.T, trans []byte, s Status) {
	t.Helper()
	written := AppendWorking(nil, trans)
	if s.Verb == Back {
		written = AppendBack(nil, trans, s.Seconds)
	}
	if s.Verb == Done {
		code := NoStatus
		if s.HasStatus {
			code = s.Code
		}
		written = AppendDoneWith(nil, trans, code, s.RetryAfter, s.Details)
	}
	if again, err := ParseStatus(written[:len(written)-1]); err != nil || again != s {
		t.Fatalf("%+v is written as %q and read as %+v, %v", s, written, again, err)
	}
	if again, err := ParseStatus(written); err == nil {
		t.Fatalf("%q, line end and all, parsed as %+v", written, again)
	}
}

func TestNoAllocations(t *testing.T) {
	url, docID, addr := []byte("http://a.example/x"), []byte("17"), netip.MustParseAddr("192.0.2.1")
	fetch := AppendFetch(nil, trans123, docID, addr, url)
	buf := make([]byte, 0, MaxLine)
	s := NewScanner(endless{lines: []byte("1.2.3 DONE 503 120\r\n")})
	for _, c := range []struct {
		name string
		run  func()
	}{
		{name: "next line, parsed", run: func() {
			if line, err := s.Next(); err != nil {
				t.Error(err)
			} else if _, err = ParseStatus(line); err != nil {
				t.Error(err)
			}
		}},
		{name: "bad line", run: func() { _, _ = ParseStatus(url) }},
		{name: "append fetch", run: func() { buf = AppendFetch(buf[:0], trans123, docID, addr, url) }},
		{name: "parse fetch", run: func() { _, _ = ParseFetch(fetch[:len(fetch)-1]) }},
		{name: "append done", run: func() { buf = AppendDone(buf[:0], docID, 200, 1) }},
	} {
		if n := testing.AllocsPerRun(10_000, c.run); n != 0 {
			t.Errorf("%s: %v allocations; want none", c.name, n)
		}
	}
}

func BenchmarkParseStatus(b *testing.B) {
	for _, line := range []string{"4095.0.1234567 DONE", "4095.0.1234567 DONE 503 120"} {
		b.Run(strings.ReplaceAll(line[len("4095.0.1234567 "):], " ", "_"), func(b *testing.B) {
			raw := []byte(line)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseStatus(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
