package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"urlserver/docindex/export"
	"urlserver/internal/clihelp"
)

const (
	putLines   = 2000      // lines of a request
	putBytes   = 512 << 10 // bytes of a request, about
	maxPutLine = 256 << 10 // longer than the daemon accepts, so that the daemon reports it
)

// sums counts the results of lines.
type sums struct {
	New        int `json:"new"`
	Known      int `json:"known"`
	Renumbered int `json:"renumbered,omitempty"` // import only, like Settings
	Settings   int `json:"settings,omitempty"`
	Invalid    int `json:"invalid"`
	OutOfScope int `json:"out_of_scope,omitempty"` // put only, like Crawl
	Dropped    int `json:"dropped,omitempty"`      // since the crawl was stopped

	Crawl string `json:"crawl,omitempty"` // whose scope was set
}

func (s *sums) add(more sums) {
	s.New += more.New
	s.Known += more.Known
	s.Renumbered += more.Renumbered
	s.Settings += more.Settings
	s.Invalid += more.Invalid
	s.OutOfScope += more.OutOfScope
	s.Dropped += more.Dropped
}

func putCommand() *cobra.Command {
	var c client
	var bounds putScope
	cmd := &cobra.Command{
		Use:   "put FILE…|-",
		Short: "Put URLs into a running daemon",
		Long: "Puts the URLs of files, or of standard input for -, into the embedded doc index of a " +
			"running daemon, and prints\n" +
			"one JSON line with how many were new, known and invalid. A file holds one URL a line; or " +
			"NDJSON, if its name\n" +
			"ends in .ndjson or .jsonl or it begins with a brace: {\"url\", \"doc_id\"?, \"priority\"?, " +
			"\"crawl\"?, \"key\"?, \"due\"?, \"metadata\"?}.\n" +
			"Invalid lines are named on standard error; the other lines are put. The exit status is 0 if all " +
			"lines could be sent\n" +
			"and one of them was valid.\n" +
			"A known URL does not change, so the same file may be put again. Files packed with zstd or gzip " +
			"are unpacked.\n" +
			"A known URL with \"due\": \"now\" is fetched again.\n\n" +
			"The flags --deny, --depth, --domain, --host, --max-pages and --same-site set the crawl's " +
			"scope, in place of the one that\n" +
			"it had. The scope holds for the links on its pages, too. Without --crawl the command makes the crawl's " +
			"ID from the scope.\n" +
			"A URL that is not in scope counts as out_of_scope.",
		Example: "  echo https://example.org/ | urlserver put --same-site -\n" +
			"  echo '{\"url\":\"https://example.org/\",\"due\":\"now\"}' | urlserver put -\n" +
			"  urlserver put --crawl docs --domain example.org --depth 3 --deny /calendar/ urls.txt\n" +
			"  urlserver put --at 10.0.0.5:8080 urls.txt.gz",
		Args: clihelp.Takes(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			crawl, in, err := bounds.apply(cmd.Context(), &c, args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			p := &putter{client: &c, path: "/docindex/urls", crawl: crawl, errs: cmd.ErrOrStderr()}
			if bounds.bounded() {
				p.sums.Crawl = crawl
			}
			return p.all(cmd.Context(), args, in, cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	bounds.flags(cmd)
	return cmd
}

// all puts the files and prints the sums, after an error, too.
func (p *putter) all(ctx context.Context, files []string, in io.Reader, out io.Writer) error {
	p.progress = newProgress(p.errs, "put", "sent", totalSize(files))
	var err error
	for _, file := range files {
		if err = p.file(ctx, file, in); err != nil {
			break
		}
	}
	if s := &p.sums; err == nil && s.Invalid > 0 && s.New+s.Known+s.OutOfScope+s.Dropped == 0 {
		err = errors.New("nothing was put: no line is valid")
	}
	return p.end(out, err)
}

// totalSize returns the bytes of all files, -1 if that is unknown.
func totalSize(files []string) int64 {
	total := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if file == "-" || err != nil || !info.Mode().IsRegular() {
			return -1
		}
		total += info.Size()
	}
	return total
}

// putter sends lines in batches. A batch has all lines of the input, also invalid ones, so the
// daemon's line numbers are right.
type putter struct {
	client   *client
	path     string // of the daemon's API
	crawl    string // of lines that name none; "": DEFAULT
	errs     io.Writer
	progress progress
	sums     sums

	name  string // of the input
	media string
	in    *counter
	first int // number of the first line of batch
	lines int // in batch
	batch []byte
}

func (p *putter) file(ctx context.Context, name string, in io.Reader) error {
	if name == "-" {
		return p.read(ctx, "standard input", "", in)
	}
	f, err := os.Open(name)
	if err != nil && strings.Contains(name, "://") {
		return fmt.Errorf("%s is a URL, and put reads files of URLs: echo %s | urlserver put -", name, name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return p.read(ctx, name, name, f)
}

// read sends all lines of r, which may be compressed. file is its name, or "".
func (p *putter) read(ctx context.Context, name, file string, r io.Reader) error {
	p.in = &counter{r: r}
	plain, err := export.Unpack(p.in, file)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer plain.Close()
	in := bufio.NewReaderSize(plain, maxPutLine)
	p.name, p.first = name, 1
	var hint string
	if p.media, hint = mediaType(filepath.Ext(file), in); hint != "" {
		p.progress.clear()
		fmt.Fprintf(p.errs, "%s: %s\n", name, hint)
	}
	for {
		line, _, err := nextLine(in)
		if err == nil || err == io.EOF && len(line) > 0 {
			p.batch = append(append(p.batch, line...), '\n')
			p.lines++
		}
		if p.lines == putLines || len(p.batch) >= putBytes || err != nil {
			if err := p.send(ctx); err != nil {
				return fmt.Errorf("%s: lines from %d on may be missing, and may be put again: %w", name, p.first, err)
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("read %s: %w; sent before: %s", name, err, count(p.first-1, "line"))
		}
	}
}

// end prints the sums. It returns err, or the error of printing.
func (p *putter) end(out io.Writer, err error) error {
	p.progress.end()
	if printed := printJSON(out, p.sums); err == nil {
		err = printed
	}
	return err
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// mediaType recognizes NDJSON by the name's ending, or else by the first byte. hint warns of input
// that looks like something else.
func mediaType(ext string, in *bufio.Reader) (media, hint string) {
	start, _ := in.Peek(4096) // an error comes again later
	start = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(start), []byte(byteOrderMark)))
	object, array := bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("["))
	ext = strings.ToLower(ext)
	byName := ext == ".ndjson" || ext == ".jsonl"
	switch {
	case array:
		hint = "this looks like a JSON array; put takes one URL a line, or one JSON object a line"
	case byName && !object && len(start) > 0:
		hint = "the name says NDJSON, and the first line is no JSON object; give a file of plain URLs another ending"
	}
	if byName || object {
		return "application/x-ndjson", hint
	}
	return "text/plain; charset=utf-8", hint
}

// send puts the batch and begins the next one.
func (p *putter) send(ctx context.Context) error {
	if p.lines == 0 {
		return nil
	}
	var answer struct {
		sums
		Errors []string `json:"errors"`
	}
	to := p.client.base.JoinPath(p.path)
	to.RawQuery = crawlQuery(p.crawl).Encode()
	_, err := p.client.callURL(ctx, http.MethodPost, to, p.media, bytes.NewReader(p.batch), &answer)
	if err != nil {
		return err
	}
	p.sums.add(answer.sums)
	p.tell(answer.Errors, answer.Invalid)
	p.progress.add(p.name, p.lines, p.in.n)
	p.in.n = 0
	p.first += p.lines
	p.lines, p.batch = 0, p.batch[:0]
	return nil
}

// tell reports invalid lines, with their numbers in the input.
func (p *putter) tell(errors []string, invalid int) {
	if invalid == 0 {
		return
	}
	p.progress.clear()
	for _, text := range errors {
		number, what, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": ")
		if n, err := strconv.Atoi(number); ok && err == nil {
			text = fmt.Sprintf("line %d: %s", p.first+n-1, what)
		}
		fmt.Fprintf(p.errs, "%s: %s\n", p.name, clihelp.Harmless(text))
	}
	if more := invalid - len(errors); more > 0 {
		fmt.Fprintf(p.errs, "%s: %s from line %d to %d\n", p.name, count(more, "more invalid line"), p.first,
			p.first+p.lines-1)
	}
}
