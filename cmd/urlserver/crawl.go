package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

func crawlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crawl",
		Short: "Submit, list, count and stop crawls",
		Args:  knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return clihelp.Usagef("no command; try %s --help", cmd.CommandPath())
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		crawlVerb("submit", "Submit URLs to crawl", func(f fields) bool { return f.URL != nil }),
		crawlVerb("info", "Count what is pending of applications or crawls", func(f fields) bool {
			return f.Action == "info"
		}),
		crawlListCommand(), crawlShowCommand(), crawlStopCommand(),
	)
	return cmd
}

// fields tell the kind of a request.
type fields struct {
	Action any
	URL    any
}

func crawlVerb(verb, short string, is func(fields) bool) *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   verb + " FILE…|-",
		Short: short,
		Long: short + ": sends the JSON requests of files, or of standard input for -, to a running " +
			"daemon, one after\n" +
			"the other, and prints the replies, one a line. urlserver schema prints the form of the requests.\n" +
			"If a request is refused, the command reports it on standard error, sends the others, and ends with " +
			"status 1.\n" +
			"It also names there the crawls whose URLs are dropped because the crawl was stopped or has expired.",
		Example: "  urlserver crawl " + verb + " requests.ndjson",
		Args:    clihelp.Takes(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			s := sender{client: &c, verb: verb, is: is, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
			if verb == "submit" {
				s.hint = "; urlserver put takes plain URLs"
			}
			return s.sendAll(cmd.Context(), args, cmd.InOrStdin())
		},
	}
	c.flags(cmd)
	return cmd
}

// sender sends requests of one kind.
type sender struct {
	client  *client
	verb    string
	hint    string // for input that is not JSON
	is      func(fields) bool
	out     io.Writer
	errs    io.Writer
	refused int
	dropped map[string]int // URLs that the index dropped, by crawl
}

func (s *sender) sendAll(ctx context.Context, files []string, in io.Reader) error {
	for _, name := range files {
		if err := s.file(ctx, name, in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return s.failure()
}

// failure warns of crawls whose URLs were dropped. It returns an error if the daemon did not do all
// requests.
func (s *sender) failure() error {
	for _, crawl := range slices.Sorted(maps.Keys(s.dropped)) {
		fmt.Fprintf(s.errs, "crawl %s was stopped or has expired: %s dropped\n",
			clihelp.Harmless(crawl), count(s.dropped[crawl], "URL"))
	}
	if s.refused > 0 {
		return fmt.Errorf("%s refused", count(s.refused, "request"))
	}
	return nil
}

func (s *sender) file(ctx context.Context, name string, in io.Reader) error {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	text := bufio.NewReader(in)
	if start, _ := text.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		text.Discard(len(byteOrderMark)) // never fails: they are in the buffer
	}
	requests := json.NewDecoder(text)
	for n := 1; ; n++ {
		var raw json.RawMessage
		if err := requests.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
			return fmt.Errorf("request %d is not JSON: %w; urlserver schema prints what requests look like%s",
				n, err, s.hint)
		} else if err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		if err := s.send(ctx, fmt.Sprintf("%s: request %d", name, n), raw); err != nil {
			return err
		}
	}
}

// send sends one request. It reports and counts a refused request. After an error the caller stops.
func (s *sender) send(ctx context.Context, name string, raw json.RawMessage) error {
	var f fields
	if json.Unmarshal(raw, &f) != nil || !s.is(f) {
		s.refuse(name, "is no request to "+s.verb)
		return nil
	}
	var reply json.RawMessage
	_, err := s.client.call(ctx, http.MethodPost, "/api/actions", "application/json", bytes.NewReader(raw),
		&reply)
	if r, ok := errors.AsType[*refusedError](err); ok && r.code == http.StatusBadRequest {
		s.refuse(name, r.text)
		return nil
	}
	if err != nil {
		return err
	}
	var answer struct{ Status, CrawlID string }
	if json.Unmarshal(reply, &answer) == nil && answer.Status == "dropped" {
		s.drop(answer.CrawlID)
	}
	_, err = fmt.Fprintf(s.out, "%s\n", bytes.TrimSpace(reply))
	return err
}

func (s *sender) drop(crawl string) {
	if s.dropped == nil {
		s.dropped = map[string]int{}
	}
	s.dropped[crawl]++
}

func (s *sender) refuse(name, why string) {
	s.refused++
	fmt.Fprintf(s.errs, "%s %s\n", name, clihelp.Harmless(why))
}
