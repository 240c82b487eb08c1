package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"urlserver/configs"
	"urlserver/internal/clihelp"
	"urlserver/internal/robots"
	"urlserver/internal/weburl"
)

// verdict is the output of the command robots.
type verdict struct {
	Allowed    bool    `json:"allowed"`
	Rule       string  `json:"rule"` // "": no rule matched
	CrawlDelay float64 `json:"crawl_delay_s"`
}

func robotsCommand() *cobra.Command {
	var agent string
	var status int
	cmd := &cobra.Command{
		Use:   "robots --agent AGENT [--status N] FILE|- URL",
		Short: "Tell what a robots.txt means for a URL",
		Long: "Reads a robots.txt from FILE, or from standard input for -, and prints one JSON line: " +
			"whether AGENT may fetch URL,\n" +
			`the rule that decided ("" if none matched), and the pause asked for between two requests, in seconds.` + "\n" +
			"Like the daemon, it does not read beyond the default robots.max_size.",
		Example: "  curl -s https://example.org/robots.txt | urlserver robots --agent mybot - " +
			"https://example.org/private",
		Args: clihelp.Takes(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if agent == "" {
				return clihelp.Usagef("--agent is needed: the User-Agent, or its product token")
			}
			if status != 0 && (status < 100 || status > 999) {
				return clihelp.Usagef("--status %d: an HTTP status, or 0 for no answer, is wanted", status)
			}
			return judge(cmd, args[0], args[1], agent, status)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "User-Agent that wants to fetch")
	cmd.Flags().IntVar(&status, "status", 200, "HTTP `status` that the file came with; 0: there was no answer")
	return cmd
}

func judge(cmd *cobra.Command, file, rawURL, agent string, status int) error {
	url, err := weburl.Parse([]byte(rawURL))
	if err != nil {
		return clihelp.Usagef("URL: %w", err)
	}
	body, err := readRobots(cmd.InOrStdin(), file)
	if err != nil {
		return fmt.Errorf("robots.txt: %w", err)
	}
	rules := robots.ForStatus(status, body, agent)
	v := verdict{CrawlDelay: rules.CrawlDelay().Seconds()}
	v.Allowed, v.Rule = rules.Match(url.Target())
	return printJSON(cmd.OutOrStdout(), v)
}

// readRobots reads as much as the daemon would: up to its limit, and no partial line.
func readRobots(in io.Reader, file string) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	most := configs.Default().Robots.MaxSize
	body, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if len(body) > most {
		body = body[:most]
		body = body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	return body, err
}

// printJSON prints v on one line.
func printJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
