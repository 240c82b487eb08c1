package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"urlserver/docindex"
)

const (
	seedBatch   = 1000     // URLs put at once
	maxSeedLine = 64 << 10 // far longer than any URL
	shownSeeds  = 10       // bad lines of a file that are logged
)

// loadSeeds puts the URLs of files into store. A file that cannot be read is an error. A line that
// is no URL is logged and skipped.
func (s *server) loadSeeds(ctx context.Context, store docindex.Putter, files []string) error {
	for _, file := range files {
		p := seedLoader{store: store, file: file}
		if err := p.load(ctx); err != nil {
			return fmt.Errorf("docindex.seeds: %w", err)
		}
		for _, bad := range p.bad {
			s.log.Warn().Str("file", file).Msg("seed skipped: " + bad)
		}
		s.log.Info().Str("file", file).Int("new", p.fresh).Int("known", p.known).Int("invalid",
			p.invalid).Msg("seeds put in")
	}
	return nil
}

// seedLoader puts a file with one URL a line.
type seedLoader struct {
	store docindex.Putter
	file  string
	puts  docindex.Puts

	fresh, known, invalid int
	bad                   []string // the first invalid ones
}

func (p *seedLoader) load(ctx context.Context) error {
	f, err := os.Open(p.file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, maxSeedLine)
	for number := 1; ; number++ {
		line, tooLong, err := nextLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", p.file, err)
		}
		p.add(number, line, tooLong)
		if p.puts.Len() == seedBatch || err != nil {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

func (p *seedLoader) add(number int, line []byte, tooLong bool) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
	if tooLong {
		p.refuse(number, fmt.Errorf("longer than %d bytes", maxSeedLine))
		return
	}
	if len(line) == 0 {
		return
	}
	if err := p.puts.Add(docindex.Put{URL: line}); err != nil {
		p.refuse(number, err)
	}
}

func (p *seedLoader) refuse(number int, err error) {
	p.invalid++
	if len(p.bad) < shownSeeds {
		p.bad = append(p.bad, fmt.Sprintf("line %d: %v", number, err))
	}
}

func (p *seedLoader) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	res, err := p.store.Put(ctx, &p.puts)
	p.fresh += res.New
	p.known += res.Known
	p.puts.Reset()
	if err != nil {
		return fmt.Errorf("put %s: %w", p.file, err)
	}
	return nil
}

// byteOrderMark is what some editors write before the first line.
const byteOrderMark = "\ufeff"

// nextLine reads a line without its end. The line aliases in, and is cut to the size of in's
// buffer. The last line comes with io.EOF, and may be empty.
func nextLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	line, err = in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return cutLine(in, line)
	}
	return bytes.TrimSuffix(line, []byte("\n")), false, err
}

// cutLine skips the rest of a long line. start is the filled buffer.
func cutLine(in *bufio.Reader, start []byte) (line []byte, tooLong bool, err error) {
	line = bytes.Clone(start)
	for {
		_, err = in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, true, err
		}
	}
}
