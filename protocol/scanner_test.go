package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// pieces is a reader that gives its pieces one by one, then the error.
type pieces struct {
	parts [][]byte
	err   error
	reads int
}

func (p *pieces) Read(b []byte) (int, error) {
	p.reads++
	if len(p.parts) == 0 {
		return 0, p.err
	}
	n := copy(b, p.parts[0])
	if p.parts[0] = p.parts[0][n:]; len(p.parts[0]) == 0 {
		p.parts = p.parts[1:]
	}
	return n, nil
}

// scan returns all lines and the error that ended them.
func scan(r io.Reader) (lines []string, err error) {
	s := NewScanner(r)
	for {
		line, err := s.Next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestScanner(t *testing.T) {
	long := strings.Repeat("x", MaxLine-1)
	for _, c := range []struct {
		name, text string
		want       []string
		err        error
	}{
		{name: "nothing", text: "", err: io.EOF},
		{name: "one", text: "a\n", want: []string{"a"}, err: io.EOF},
		{name: "both line ends", text: "a\r\nb\n", want: []string{"a", "b"}, err: io.EOF},
		{name: "empty lines", text: "\n\r\n\n", want: []string{"", "", ""}, err: io.EOF},
		{name: "one carriage return only", text: "a\r\r\n\rb\n", want: []string{"a\r", "\rb"}, err: io.EOF},
		{name: "cut off", text: "a\n1.2.3 DONE", want: []string{"a"}, err: io.ErrUnexpectedEOF},
		{name: "cut off before its line feed", text: "a\r", err: io.ErrUnexpectedEOF},
		{name: "longest", text: "a\n" + long + "\nb\n", want: []string{"a", long, "b"}, err: io.EOF},
		{name: "longest PUT", text: "a\nPUT " + strings.Repeat("x", MaxLong-5) + "\nb\n",
			want: []string{"a", "PUT " + strings.Repeat("x", MaxLong-5), "b"}, err: io.EOF},
		{name: "too long a PUT", text: "a\nPUT " + strings.Repeat("x", MaxLong-4) + "\nb\n", want: []string{"a"},
			err: ErrLineTooLong},
		{name: "nearly a PUT", text: "a\nPUTS" + strings.Repeat("x", MaxLine) + "\n", want: []string{"a"},
			err: ErrLineTooLong},
		{name: "too long", text: "a\n" + long + "x\nb\n", want: []string{"a"}, err: ErrLineTooLong},
		{name: "too long without end", text: "a\n" + long + "x", want: []string{"a"}, err: ErrLineTooLong},
		{name: "long and cut off", text: long, err: io.ErrUnexpectedEOF},
		{name: "other bytes", text: "\x00\xff\n", want: []string{"\x00\xff"}, err: io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text)),
				iotest.HalfReader(strings.NewReader(c.text)),
				iotest.DataErrReader(strings.NewReader(c.text)),
			} {
				if got, err := scan(r); !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
					t.Errorf("%T: got %.100q, %v; want %.100q, %v", r, got, err, c.want, c.err)
				}
			}
		})
	}
}

// A conversation cut in two at every byte, and read byte by byte, is the same conversation.
func TestScannerCutAnywhere(t *testing.T) {
	text := "AUTH s3cr3t\n1.2.3 WORKING\r\n4294967295.0.1 DONE\n1.2.3 DONE 503 120\r\n\n0.0.0 nonsense\n"
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r", ""), "\n"), "\n")
	for i := range text {
		got, err := scan(&pieces{parts: [][]byte{[]byte(text[:i]), []byte(text[i:])}, err: io.EOF})
		if !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("cut at %d: got %q, %v; want %q", i, got, err, want)
		}
		lines, err := scan(strings.NewReader(text[:i]))
		if n := strings.Count(text[:i], "\n"); !slices.Equal(lines, want[:n]) {
			t.Errorf("ended at %d: got %q, %v; want %q", i, lines, err, want[:n])
		} else if whole := i == 0 || text[i-1] == '\n'; whole != (err == io.EOF) {
			t.Errorf("ended at %d: %v", i, err)
		}
	}
}

// Lines of all lengths, so that the buffer's end falls on every place of a line.
func TestScannerWraps(t *testing.T) {
	var text bytes.Buffer
	var want []string
	for i := range 400 {
		line := strings.Repeat(string(rune('a'+i%26)), i*37%(MaxLine-1))
		want = append(want, line)
		text.WriteString(line + "\n")
	}
	for _, size := range []int{1, 7, 4096, MaxLine, 4*MaxLine - 1, 1 << 20} {
		var parts [][]byte
		for part := range slices.Chunk(text.Bytes(), size) {
			parts = append(parts, part)
		}
		if got, err := scan(&pieces{parts: parts, err: io.EOF}); !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("pieces of %d bytes: %d lines, %v; want %d lines as written", size, len(got), err, len(want))
		}
	}
}

func TestScannerErrorsLast(t *testing.T) {
	broken := errors.New("broken")
	r := &pieces{parts: [][]byte{[]byte("a\nb")}, err: broken}
	s := NewScanner(r)
	if line, err := s.Next(); string(line) != "a" || err != nil {
		t.Fatalf("Next = %q, %v; want the line before the error", line, err)
	}
	for range 3 {
		if line, err := s.Next(); line != nil || err != broken {
			t.Errorf("Next = %q, %v; want %v", line, err, broken)
		}
	}
	if r.reads != 2 {
		t.Errorf("read %d times; want 2: an error is not asked for again", r.reads)
	}
}

func TestScannerGivesUpOnAnIdleReader(t *testing.T) {
	if _, err := scan(&pieces{}); err != io.ErrNoProgress {
		t.Errorf("a reader that gives neither bytes nor errors ended with %v; want %v", err, io.ErrNoProgress)
	}
}

func TestBuffered(t *testing.T) {
	r := &pieces{parts: [][]byte{[]byte("a\nb\nc"), []byte("\n")}, err: io.EOF}
	s := NewScanner(r)
	for i, want := range []struct {
		before, after bool
		line          string
		reads         int
	}{
		{before: false, line: "a", after: true, reads: 1},
		{before: true, line: "b", after: false, reads: 1},
		{before: false, line: "c", after: false, reads: 2},
	} {
		before := s.Buffered()
		line, err := s.Next()
		if before != want.before || string(line) != want.line || err != nil || s.Buffered() != want.after ||
			r.reads != want.reads {
			t.Errorf("line %d: Buffered %v, %q, %v, Buffered %v, %d reads; want %+v", i, before, line, err,
				s.Buffered(), r.reads, want)
		}
	}
	if _, err := s.Next(); err != io.EOF || !s.Buffered() {
		t.Errorf("at the end: %v, Buffered %v; want EOF that stays", err, s.Buffered())
	}
}

func TestBufferedTellsOfALineTooLong(t *testing.T) {
	s := NewScanner(strings.NewReader("a\n" + strings.Repeat("x", 2*MaxLine)))
	if _, err := s.Next(); err != nil || !s.Buffered() {
		t.Fatalf("Next: %v, Buffered %v; want the error to be waiting", err, s.Buffered())
	}
	if _, err := s.Next(); err != ErrLineTooLong {
		t.Errorf("Next: %v; want %v", err, ErrLineTooLong)
	}
}

// FuzzScanner compares with bufio.Scanner, on the same stream in pieces of the same size.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("1.2.3 DONE\r\n\n1.2.3 WORKING"), uint16(3), uint16(1))
	f.Add([]byte("a\n"), uint16(9000), uint16(8191))
	f.Add([]byte("aaa\r\naa\r\r\n"), uint16(1), uint16(4096))
	f.Add([]byte("PUT "+strings.Repeat("x", 600)), uint16(1000), uint16(61))
	f.Add(append([]byte("PUT "+strings.Repeat("x", 32000)), "\na\nPUT "...), uint16(5000), uint16(0))
	f.Fuzz(func(t *testing.T, text []byte, size, repeat uint16) {
		text = bytes.Repeat(text, 1+int(repeat)%64)
		var parts [][]byte
		for part := range slices.Chunk(text, 1+int(size)) {
			parts = append(parts, part)
		}
		got, err := scan(&pieces{parts: parts, err: io.EOF})
		want, wantErr := naiveScan(text)
		if !slices.Equal(got, want) || err != wantErr {
			t.Fatalf("got %.100q, %v; want %.100q, %v", got, err, want, wantErr)
		}
	})
}

func naiveScan(text []byte) (lines []string, err error) {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	s := bufio.NewScanner(bytes.NewReader(whole))
	s.Buffer(nil, len(text)+2)
	for pos := 0; s.Scan(); {
		pos += 1 + bytes.IndexByte(whole[pos:], '\n')
		if start := bytes.LastIndexByte(whole[:pos-1], '\n') + 1; pos-start > naiveMost(whole[start:]) {
			return lines, ErrLineTooLong
		}
		lines = append(lines, s.Text())
	}
	switch rest := len(text) - len(whole); {
	case rest >= naiveMost(text[len(whole):]):
		return lines, ErrLineTooLong
	case rest > 0:
		return lines, io.ErrUnexpectedEOF
	}
	return lines, io.EOF
}

func naiveMost(line []byte) int {
	if strings.HasPrefix(string(line), "PUT ") {
		return MaxLong
	}
	return MaxLine
}

// endless gives the same lines for ever, as many at a time as fit.
type endless struct{ lines []byte }

func (e endless) Read(b []byte) (int, error) { return copy(b, e.lines), nil }

func BenchmarkScanner(b *testing.B) {
	line := []byte("4095.0.1234567 DONE 200\n")
	s := NewScanner(endless{lines: bytes.Repeat(line, 1000)})
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := s.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
