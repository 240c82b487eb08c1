package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

// operateCommands returns the commands that change a running daemon.
func operateCommands() []*cobra.Command {
	return []*cobra.Command{
		pauseCommand("pause", "Stop sending URLs to spiders",
			"Fetches that are open go on. A daemon that is started again is not paused.", "sending is paused"),
		pauseCommand("resume", "Resume sending URLs to spiders", "Ends the pause that urlserver pause began.",
			"sending goes on"),
		blockCommand(), unblockCommand(), delayCommand(), reloadCommand(),
	}
}

func pauseCommand(verb, short, more, done string) *cobra.Command {
	return lineCommand(&cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    short + ". " + more,
		Example: "  urlserver " + verb,
		Args:    clihelp.Takes(cobra.NoArgs),
	}, func(ctx context.Context, c *client, _ []string) (string, error) {
		var answer struct{ Paused bool }
		return done, c.post(ctx, "/api/"+verb, nil, &answer)
	})
}

// lineCommand completes a command that calls the daemon and prints a line about the result.
func lineCommand(
	cmd *cobra.Command, do func(ctx context.Context, c *client, args []string) (line string, err error),
) *cobra.Command {
	var c client
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		line, err := do(cmd.Context(), &c, args)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
		return err
	}
	c.flags(cmd)
	return cmd
}

// forGood is the duration of a block without an end: the API needs a time, and limits it to a
// hundred years.
const forGood = 100 * 365 * 24 * time.Hour

func blockCommand() *cobra.Command {
	var until string
	var long time.Duration
	cmd := lineCommand(&cobra.Command{
		Use:   "block HOST",
		Short: "Send nothing to a host",
		Long: "Sends nothing to HOST until it is unblocked, or until the time that --until or --for " +
			"names. Its URLs wait.\n" +
			"With an embedded index the block is as durable as the index and binds URL Frontier clients too.",
		Example: "  urlserver block example.org --for 24h\n  urlserver block example.org --until 2030-01-02T03:04:05Z",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
	}, func(ctx context.Context, c *client, args []string) (string, error) {
		end := time.Now().Add(forGood)
		switch {
		case until != "" && long != 0:
			return "", clihelp.Usagef("--until and --for cannot go together")
		case long < 0:
			return "", clihelp.Usagef("--for %v: a positive duration is wanted", long)
		case long > 0:
			end = time.Now().Add(long)
		case until != "":
			var err error
			if end, err = time.Parse(time.RFC3339, until); err != nil {
				return "", clihelp.Usagef("--until %q: a time as in 2030-01-02T03:04:05Z is wanted", until)
			}
			if !end.After(time.Now()) {
				return "", clihelp.Usagef("--until %s is in the past; to unblock, use urlserver unblock %s",
					until, args[0])
			}
		}
		set, err := c.block(ctx, args[0], end)
		text := "until it is unblocked"
		if until != "" || long != 0 {
			text = "until " + end.Format(time.RFC3339)
		}
		if set != nil && set.Before(end.Add(-time.Second)) && (until != "" || long != 0) {
			text = "until " + set.Format(time.RFC3339) + ": no block lasts longer than a hundred years"
		}
		return fmt.Sprintf("%s is blocked %s", args[0], text), err
	})
	cmd.Flags().StringVar(&until, "until", "", "block until this `time`, RFC 3339")
	cmd.Flags().DurationVar(&long, "for", 0, "block for this long, as in 90m or 24h")
	return cmd
}

func unblockCommand() *cobra.Command {
	return lineCommand(&cobra.Command{
		Use:     "unblock HOST",
		Short:   "End the block of a host",
		Example: "  urlserver unblock example.org",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
	}, func(ctx context.Context, c *client, args []string) (string, error) {
		_, err := c.block(ctx, args[0], time.Unix(0, 0))
		return args[0] + " is unblocked", err
	})
}

func delayCommand() *cobra.Command {
	return lineCommand(&cobra.Command{
		Use:   "delay HOST DURATION",
		Short: "Set the least time between two URLs of a host",
		Long: "Sets the least time between two URLs of HOST that the embedded index gives out, to " +
			"spiders and URL Frontier\n" +
			"clients together, in all crawls. DURATION is in whole seconds, as in 10s or 2m; 0s\n" +
			"removes the delay. Other limits still hold.",
		Example: "  urlserver delay example.org 10s\n  urlserver delay example.org 0s",
		Args:    clihelp.Takes(cobra.ExactArgs(2)),
	}, func(ctx context.Context, c *client, args []string) (string, error) {
		delay, err := time.ParseDuration(args[1])
		if err != nil || delay < 0 || delay%time.Second != 0 {
			return "", clihelp.Usagef("DURATION %q: whole seconds are wanted, as in 10s or 2m", args[1])
		}
		var answer struct {
			Delay int64 `json:"delay_s"`
		}
		body := map[string]int64{"delay_s": int64(delay / time.Second)}
		if err := c.post(ctx, hostPath(args[0], "delay"), body, &answer); err != nil {
			return "", err
		}
		text := "no delay"
		if answer.Delay > 0 {
			text = fmt.Sprintf("at least %v between two URLs", time.Duration(answer.Delay)*time.Second)
		}
		return args[0] + ": " + text, nil
	})
}

func reloadCommand() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Read settings and certificates again",
		Long: "Makes the daemon read its settings file and certificates again, as SIGHUP does, and prints " +
			"which changed settings are applied and which need a restart.\n" +
			"Exit status 1 if the file cannot be used, or a changed setting needs a restart.",
		Example: "  urlserver reload",
		Args:    clihelp.Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var told reloaded
			if err := c.post(cmd.Context(), "/api/reload", nil, &told); err != nil {
				return err
			}
			return told.print(cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	return cmd
}

// reloaded is the daemon's answer to a reload.
type reloaded struct {
	Applied      []string
	Refused      []struct{ Setting, Why string }
	Certificates []string
}

func (r *reloaded) print(out io.Writer) error {
	for _, name := range r.Applied {
		fmt.Fprintf(out, "applied: %s\n", name)
	}
	for _, listener := range r.Certificates {
		fmt.Fprintf(out, "certificates read again: %s\n", listener)
	}
	for _, x := range r.Refused {
		fmt.Fprintf(out, "not applied: %s: %s\n", x.Setting, x.Why)
	}
	if n := len(r.Refused); n > 0 {
		return fmt.Errorf("%d of %d changed settings not applied; the former values go on", n, n+len(r.Applied))
	}
	if len(r.Applied)+len(r.Certificates) == 0 {
		fmt.Fprintln(out, "nothing has changed")
	}
	return nil
}

// post opens the client, sends body, if any, as JSON, and decodes the answer into v.
func (c *client) post(ctx context.Context, path string, body, v any) error {
	if err := c.open(); err != nil {
		return err
	}
	text := ""
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	_, err := c.call(ctx, http.MethodPost, path, "application/json", strings.NewReader(text), v)
	return err
}

// block sets a host's block. A time in the past ends it. It returns the end of the block that is
// set now; nil: there is none.
func (c *client) block(ctx context.Context, host string, until time.Time) (set *time.Time, err error) {
	var answer struct {
		Until *time.Time `json:"blocked_until"`
	}
	err = c.post(ctx, hostPath(host, "block"),
		map[string]string{"until": until.UTC().Format(time.RFC3339)}, &answer)
	return answer.Until, err
}

func hostPath(host, verb string) string { return "/api/hosts/" + url.PathEscape(host) + "/" + verb }
