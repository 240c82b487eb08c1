package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

func exportCommand() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "export FILE|-",
		Short: "Write all that a running daemon's doc index holds to a file",
		Long: "Writes the URLs and settings of the embedded doc index of a running daemon to a file, or " +
			"to standard output for -:\n" +
			"one JSON object a line, packed by zstd if the name ends in .zst, by gzip if in .gz. " +
			"The file appears when it is complete, and then\n" +
			"replaces a file of its name; only its owner may read it. A symbolic link is not " +
			"followed. Prints one\n" +
			"JSON line with how many URLs and settings the file has. Any kind of index and the URL " +
			"Frontier's own client can\n" +
			"import it. If a URL is put or fetched during the export, the file has its state from before " +
			"or after that.",
		Example: "  urlserver export all.ndjson.zst",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			return exportAll(cmd.Context(), &c, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.flags(cmd)
	return cmd
}

func exportAll(ctx context.Context, c *client, file string, out, errs io.Writer) (err error) {
	e := exporter{client: c, progress: newProgress(errs, "export", "written", -1)}
	defer e.progress.end()
	if file == "-" {
		return e.to(ctx, out, "standard output")
	}
	switch info, err := os.Lstat(file); {
	case err != nil || info.Mode().IsRegular():
	case info.Mode()&os.ModeSymlink != 0:
		return clihelp.Usagef("%s is a symbolic link, which export does not follow; name the file itself, or - "+
			"for standard output", file)
	default:
		return e.toDevice(ctx, file) // a device must not be replaced
	}
	if err := e.toFile(ctx, file); err != nil {
		return err
	}
	return printJSON(out, struct {
		URLs     int `json:"urls"`
		Settings int `json:"settings"`
	}{e.urls, e.settings})
}

// exporter writes a daemon's export and counts what is in it.
type exporter struct {
	client         *client
	progress       progress
	urls, settings int
	whole          bool // the last line has arrived
}

// ownerOnly are the permissions of files that show what is crawled.
const ownerOnly = 0o600

// toFile writes to a new file beside the target and renames it. It follows no link at the target.
func (e *exporter) toFile(ctx context.Context, file string) error {
	part := file + ".part"
	// left over by a process that was killed
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return err
	}
	err = errors.Join(e.packed(ctx, f, file), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

func (e *exporter) toDevice(ctx context.Context, file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(e.packed(ctx, f, file), f.Close())
}

// packed compresses as the file's name says.
func (e *exporter) packed(ctx context.Context, f io.Writer, file string) error {
	var pack io.WriteCloser
	var err error
	switch strings.ToLower(filepath.Ext(file)) {
	case ".zst":
		pack, err = zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
	case ".gz":
		pack = gzip.NewWriter(f)
	default:
		return e.to(ctx, f, file)
	}
	if err != nil {
		return err
	}
	return errors.Join(e.to(ctx, pack, file), pack.Close())
}

var errSilent = fmt.Errorf("the daemon has sent nothing for %v", callTimeout)

// to writes the export to w. Errors have the name.
func (e *exporter) to(ctx context.Context, w io.Writer, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(callTimeout, func() { cancel(errSilent) })
	defer silence.Stop()
	answer, err := e.client.stream(ctx, http.MethodGet, "/docindex/dump", "", nil)
	if err == nil {
		defer answer.Close()
		out := bufio.NewWriter(w)
		err = e.copy(out, name, readerFunc(func(p []byte) (int, error) {
			n, err := answer.Read(p)
			silence.Reset(callTimeout)
			return n, err
		}))
		err = errors.Join(err, out.Flush())
	}
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, errSilent):
		err = errSilent
	case cause != nil:
		err = errInterrupted
	}
	return fmt.Errorf("export to %s: after %s: %w", name, count(e.urls, "URL"), err)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// copy copies lines until the one that marks the end.
func (e *exporter) copy(out *bufio.Writer, name string, r io.Reader) error {
	in := bufio.NewReaderSize(r, maxPutLine)
	for {
		line, tooLong, err := nextLine(in)
		switch {
		case err == io.EOF && len(line) == 0 && e.whole:
			return nil
		case err == io.EOF:
			return errors.New("the daemon has broken off")
		case err != nil:
			return fmt.Errorf("read what the daemon sends: %w", err)
		case tooLong:
			return fmt.Errorf("the daemon sends a line of more than %d bytes; is --at right?", maxPutLine)
		}
		if err := e.count(line); err != nil {
			return err
		}
		e.progress.add("to "+name, 1, len(line)+1)
		out.Write(line)
		if err := out.WriteByte('\n'); err != nil { // reports an error of the Write before, too
			return err
		}
	}
}

// count counts a line by its kind.
func (e *exporter) count(line []byte) error {
	var failure struct{ Error string }
	switch {
	case e.whole:
		return errors.New("the daemon sends lines after the end; is --at right?")
	case bytes.HasPrefix(line, []byte(`{"known":`)):
		e.urls++
	case bytes.HasPrefix(line, []byte(`{"set":`)):
		e.settings++
	case string(line) == fmt.Sprintf(`{"end":"%d"}`, e.urls):
		e.whole = true
	case json.Unmarshal(line, &failure) == nil && failure.Error != "":
		return fmt.Errorf("the daemon could not go on: %s", failure.Error)
	default:
		return fmt.Errorf("the daemon sends %.100q, which is no line of a dump; is --at right?", line)
	}
	return nil
}
