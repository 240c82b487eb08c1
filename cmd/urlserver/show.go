package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"urlserver/docindex"
	"urlserver/internal/clihelp"
	"urlserver/protocol"
)

// shown is the answer of /docindex/urls?url=URL.
type shown struct {
	DocID    string `json:"doc_id"`
	URL      string
	State    string
	Due      *time.Time
	Outcome  string
	Status   *int
	At       *time.Time
	Priority int32
	Crawl    string
	Key      string
	Unique   string
	Depth    int
	Payload  []byte
}

func showCommand() *cobra.Command {
	var c client
	query := url.Values{}
	var crawl, key string
	cmd := &cobra.Command{
		Use:   "show URL",
		Short: "Show what an embedded index knows of a URL",
		Long: "Shows the state of a URL in the embedded doc index of a running daemon: whether it waits, " +
			"is out or has ended,\n" +
			"when it is due next, and its last outcome with HTTP status and time.\n" +
			"The daemon normalises the URL as put does, so it need not be written in the same way.\n" +
			"Exit status 1 if the index does not know it.",
		Example: "  urlserver show https://example.org/\n  urlserver show --crawl news https://example.org/",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			if args[0] == "" {
				return clihelp.Usagef("URL is empty")
			}
			for name, value := range map[string]string{"url": args[0], "crawl": crawl, "key": key} {
				if value != "" {
					query.Set(name, value)
				}
			}
			var d shown
			return c.look(cmd, "/docindex/urls", query, &d, func(out io.Writer) error {
				return d.print(out, time.Now())
			})
		},
	}
	c.lookFlags(cmd)
	cmd.Flags().StringVar(&crawl, "crawl", "", "`ID` of the crawl that the URL was put with (default "+
		docindex.DefaultCrawl+")")
	cmd.Flags().StringVar(&key, "key", "", "`KEY` of the queue that the URL was put with (default its host)")
	return cmd
}

func (d *shown) print(out io.Writer, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", d.URL)
	fmt.Fprintf(w, "crawl\t%s\n", d.Crawl)
	fmt.Fprintf(w, "doc_id\t%s\n", d.DocID)
	if d.Unique != "" {
		fmt.Fprintf(w, "known by\t%q\n", d.Unique)
	}
	if d.Depth > 0 {
		fmt.Fprintf(w, "depth\t%d\n", d.Depth)
	}
	if len(d.Payload) > 0 {
		fmt.Fprintf(w, "payload\t%d bytes\n", len(d.Payload))
	}
	fmt.Fprintf(w, "state\t%s\n", d.State)
	fmt.Fprintf(w, "due\t%s\n", d.due(now))
	fmt.Fprintf(w, "last outcome\t%s\n", d.last(now))
	fmt.Fprintf(w, "next step\t%s\n", d.next(now))
	return w.Flush()
}

func (d *shown) due(now time.Time) string {
	switch {
	case d.Due == nil:
		return "never, as it is " + d.State
	case d.Due.After(now):
		return fmt.Sprintf("%s, in %v", d.Due.Format(time.RFC3339), d.Due.Sub(now).Round(time.Second))
	}
	return "now, since " + d.Due.Format(time.RFC3339)
}

// last phrases the last outcome.
func (d *shown) last(now time.Time) string {
	text := d.Outcome
	switch {
	case text == "" && d.At == nil:
		return "none"
	case text == "":
		text = "reported by a URL Frontier client"
	case d.Outcome == docindex.Done.String() && d.Status == nil:
		text += ", status not known"
	case d.Outcome == docindex.Done.String() && *d.Status == 0:
		text += ", no answer"
	case d.Outcome == docindex.Done.String():
		text += ", status " + strconv.Itoa(*d.Status)
	}
	if d.At == nil {
		return text + ", time not known"
	}
	return fmt.Sprintf("%s, at %s, %v ago", text, d.At.Format(time.RFC3339), now.Sub(*d.At).Round(time.Second))
}

// origin returns scheme, host and port of the URL.
func (d *shown) origin() string {
	u, err := url.Parse(d.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// next says what the operator may do.
func (d *shown) next(now time.Time) string {
	host := cmp.Or(string(docindex.HostOf([]byte(d.URL))), d.Key)
	switch {
	case d.State == docindex.InTransit.String():
		return "urlserver explain " + host + " says what it waits for, or whether it is at a spider"
	case d.Due != nil && d.Due.After(now):
		return "none; it waits until it is due"
	case d.Due != nil:
		return "urlserver explain " + host + " says why it is not sent yet"
	}
	switch d.Outcome {
	case docindex.Robots.String():
		return "curl -s " + d.origin() + "/robots.txt | urlserver robots --agent AGENT - " + shellWord(d.URL) +
			" says which rule forbids it"
	case docindex.DNS.String():
		return "look whether " + host + " has an address that may be asked (resolver.servers, resolver.allow_networks)"
	case docindex.Invalid.String():
		return fmt.Sprintf("look at its port, which may be blocked (resolver.allow_ports), and its length "+
			"(at most %d bytes)", protocol.MaxURL)
	case docindex.Timeout.String():
		return "look at the spiders' log: none reported it as done"
	case docindex.Stopped.String(), docindex.Expired.String():
		return "urlserver crawl show " + d.Crawl + " shows its crawl"
	}
	return "none; docindex.refetch_after is the setting that fetches URLs again"
}

// shellWord returns text as one word of a shell.
func shellWord(text string) string {
	if !strings.ContainsAny(text, "'&;?*[]()$`|<>!~#\"\\ ") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
