package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
	"urlserver/internal/weburl"
	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
)

const (
	seedBatch   = 1000 // hosts added at once
	seedsToTell = 10   // bad lines that are reported one by one
)

func seedsCommand() *cobra.Command {
	var c caller
	cmd := &cobra.Command{
		Use:   "seeds FILE",
		Short: "Add the host of each URL in a file",
		Long: "Reads URLs, one a line, and adds their hosts to a host reservation service. \"-\" is " +
			"standard input. Empty lines\n" +
			"and those that begin with # are passed over. Exit status 1 if a line is no URL; the others " +
			"are added all the same.",
		Example: "  hostreservation seeds urls.txt",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := io.NopCloser(cmd.InOrStdin())
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				in = f
			}
			defer in.Close()
			return c.call(cmd.Context(), func(ctx context.Context, s *grpcclient.Store) error {
				return addSeeds(ctx, s, in, cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	c.flags(cmd.Flags(), 10*time.Minute)
	return cmd
}

// seeds counts the results of a file of URLs.
type seeds struct {
	store        reservation.Store
	errs         io.Writer
	batch        []reservation.Call
	added, known int
	invalid      int
}

func addSeeds(ctx context.Context, store reservation.Store, in io.Reader, out, errs io.Writer) error {
	s := seeds{store: store, errs: errs}
	lines := bufio.NewReaderSize(in, 4*weburl.MaxLen)
	for number := 1; ; number++ {
		line, long, err := lines.ReadLine()
		for more := long; more && err == nil; {
			_, more, err = lines.ReadLine()
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // some editors write it
		}
		if long {
			s.tell(fmt.Errorf("line %d: longer than %d bytes", number, lines.Size()))
		} else if failed := s.add(ctx, number, bytes.TrimSpace(line)); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, s.flush(ctx))
		}
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d hosts added, %d known, %d lines invalid\n", s.added, s.known, s.invalid)
	if s.invalid > 0 {
		return fmt.Errorf("%d lines are no URLs with a usable host", s.invalid)
	}
	return nil
}

// add adds the host of a line, with those of other lines.
func (s *seeds) add(ctx context.Context, number int, line []byte) error {
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	u, err := weburl.Parse(line)
	if err != nil {
		s.tell(fmt.Errorf("line %d: %w", number, err))
		return nil
	}
	s.batch = append(s.batch, reservation.Call{Verb: reservation.AddHost, Host: string(u.Host())})
	if len(s.batch) < seedBatch {
		return nil
	}
	return s.flush(ctx)
}

// tell counts a bad line, and reports the first ones.
func (s *seeds) tell(err error) {
	if s.invalid++; s.invalid <= seedsToTell {
		fmt.Fprintln(s.errs, "hostreservation:", err)
	}
}

func (s *seeds) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	for i, a := range s.store.Do(ctx, s.batch) {
		switch {
		case errors.Is(a.Err, reservation.ErrInvalid):
			s.tell(a.Err)
		case a.Err != nil:
			return fmt.Errorf("add host %s: %w; %d hosts were added before", s.batch[i].Host, a.Err, s.added)
		case a.Added:
			s.added++
		default:
			s.known++
		}
	}
	s.batch = s.batch[:0]
	return nil
}
