package ndjson

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll returns the lines of text, "<too long>" for those over the limit, and the last error.
func readAll(r io.Reader, limit int) (all []string, err error) {
	in := NewReader(r, limit)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, ErrTooLong):
			all = append(all, "<too long>")
		case err != nil:
			return all, err
		default:
			all = append(all, string(line))
		}
		if in.Number() != len(all) {
			return all, errors.New("lines are miscounted")
		}
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 16)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{name: "nothing", text: ""},
		{name: "one", text: "a\n", want: []string{"a"}},
		{name: "without an end", text: "a\nb", want: []string{"a", "b"}},
		{name: "empty lines", text: "\n\r\n\na\n", want: []string{"", "", "", "a"}},
		{name: "carriage return", text: "a\r\nb\rc\r\n\r", want: []string{"a", "b\rc", ""}},
		{name: "byte order marks", text: "\ufeffa\n\ufeffb\nc\ufeff\n", want: []string{"a", "b", "c\ufeff"}},
		{name: "just fits", text: long[:15] + "\na\n", want: []string{long[:15], "a"}},
		{name: "just too long", text: long + "\na\n", want: []string{"<too long>", "a"}},
		{name: "far too long", text: strings.Repeat(long, 9) + "\na\n", want: []string{"<too long>", "a"}},
		{name: "too long at the end", text: "a\n" + strings.Repeat(long, 9), want: []string{"a", "<too long>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text))} {
				got, err := readAll(r, 16)
				if err != io.EOF || !slices.Equal(got, c.want) {
					t.Errorf("lines of %q = %q, %v; want %q", c.text, got, err, c.want)
				}
			}
		})
	}
}

func TestReaderBroken(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"a\nhalf a line", "a\n" + strings.Repeat("x", 99)} {
		got, err := readAll(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), 16)
		if !slices.Equal(got, []string{"a"}) || err != broken {
			t.Errorf("lines of %q, then an error = %q, %v; want a, and the error", text, got, err)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		limit      int64
		want       string
		err        error
	}{
		{name: "less", text: "abc", limit: 4, want: "abc"},
		{name: "as much", text: "abc", limit: 3, want: "abc"},
		{name: "more", text: "abcd", limit: 3, want: "abc", err: ErrTooLarge},
		{name: "nothing may come", text: "a", limit: 0, err: ErrTooLarge},
		{name: "nothing may come, nothing does", limit: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := io.ReadAll(Limit(iotest.DataErrReader(strings.NewReader(c.text)), c.limit))
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q of %d bytes = %q, %v; want %q, %v", c.text, c.limit, got, err, c.want, c.err)
			}
		})
	}
}
