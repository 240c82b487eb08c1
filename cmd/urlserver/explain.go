package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

// explanation is the answer of /api/hosts/{host}.
type explanation struct {
	Host         string
	Group        string
	Slot         *int
	Queued       int
	InFlight     int     `json:"in_flight"`
	LastSend     string  `json:"last_send"`
	NextSend     string  `json:"next_send"`
	Gap          float64 `json:"gap_s"`
	Site         level
	Address      level
	BlockedUntil string `json:"blocked_until"`
	BlockedBy    string `json:"blocked_by"`
	Fetched      hostFetches
	Robots       struct {
		State      string
		FetchedAt  string  `json:"fetched_at"`
		CrawlDelay float64 `json:"crawl_delay_s"`
	}
	Sitemaps []string
	Rule     string
	Why      string
}

// level is the pace of a site or of its address.
type level struct {
	Name     string
	Gap      float64 `json:"gap_s"`
	Open     int
	MostOpen int    `json:"most_open"`
	NextSend string `json:"next_send"`
	Why      string
}

func (l *level) String() string {
	if l.Name == "" || l.MostOpen == 0 { // the daemon has not looked the host up
		return "not known"
	}
	text := fmt.Sprintf("%s: gap %g s, %d of %d requests open, next %s", l.Name, l.Gap, l.Open, l.MostOpen,
		notBefore(l.NextSend))
	if l.Why != "" {
		text += "; " + l.Why
	}
	return text
}

// hostFetches counts the results of a host.
type hostFetches struct {
	counts    map[string]uint64
	LastError string
	ErrorAt   string
	Mean      *float64
}

// UnmarshalJSON takes numbers as counts by class, except the members with fields of their own.
func (f *hostFetches) UnmarshalJSON(text []byte) error {
	var rest struct {
		LastError string   `json:"last_error"`
		ErrorAt   string   `json:"last_error_at"`
		Mean      *float64 `json:"mean_fetch_s"`
	}
	var all map[string]any
	if err := errors.Join(json.Unmarshal(text, &rest), json.Unmarshal(text, &all)); err != nil {
		return err
	}
	f.LastError, f.ErrorAt, f.Mean, f.counts = rest.LastError, rest.ErrorAt, rest.Mean, map[string]uint64{}
	for _, class := range hostClasses {
		if n, ok := all[class].(float64); ok {
			f.counts[class] = uint64(n)
		}
	}
	return nil
}

func (f *hostFetches) String() string {
	text := cmp.Or(countsOf(f.counts, hostClasses), "nothing yet")
	if f.Mean != nil {
		text += fmt.Sprintf("; a fetch took %.3g s", *f.Mean)
	}
	if f.LastError != "" {
		text += "; last failure: " + f.LastError + ", at " + dated(f.ErrorAt, 0)
	}
	return text
}

// hostClasses are the classes of results that say something about a host.
var hostClasses = []string{"2xx", "3xx", "4xx", "5xx", "none", "robots", "dns", "timeout"}

// countsOf lists the counts of some classes that are not 0.
func countsOf(counts map[string]uint64, classes []string) string {
	var parts []string
	for _, class := range classes {
		if n := counts[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, class))
		}
	}
	return strings.Join(parts, ", ")
}

func explainCommand() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "explain HOST",
		Short: "Tell why nothing is sent to a host now",
		Long: "Tells why nothing is sent to HOST, a name or an IP address, right now: until when, and " +
			"by which rule.\n" +
			"Completed documents have ended, with any outcome; urlserver status counts the outcomes.\n" +
			"Exit status 1 if the daemon does not know the host.",
		Example: "  urlserver explain example.org",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			if args[0] == "" {
				return clihelp.Usagef("HOST is empty")
			}
			var x explanation
			return c.look(cmd, "/api/hosts/"+url.PathEscape(args[0]), nil, &x, x.print)
		},
	}
	c.lookFlags(cmd)
	return cmd
}

func (x *explanation) print(out io.Writer) error {
	slot := "none"
	if x.Slot != nil {
		slot = strconv.Itoa(*x.Slot)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s:\t%s\n", x.Host, x.Why)
	fmt.Fprintf(w, "group\t%s\n", cmp.Or(x.Group, x.noGroup()))
	fmt.Fprintf(w, "slot\t%s\n", slot)
	fmt.Fprintf(w, "documents\t%d queued, %d in flight\n", x.Queued, x.InFlight)
	fmt.Fprintf(w, "last send\t%s\n", cmp.Or(dated(x.LastSend, 0), "none"))
	fmt.Fprintf(w, "next send\t%s\n", notBefore(x.NextSend))
	fmt.Fprintf(w, "gap\t%g s\n", x.Gap)
	fmt.Fprintf(w, "site\t%s\n", &x.Site)
	fmt.Fprintf(w, "address\t%s\n", &x.Address)
	fmt.Fprintf(w, "rule\t%s\n", cmp.Or(x.Rule, "none"))
	blocked := "no"
	switch {
	case x.BlockedBy == "rule":
		blocked = "until the settings change"
	case x.BlockedUntil != "":
		blocked = "until " + dated(x.BlockedUntil, roundUp)
	}
	fmt.Fprintf(w, "came back\t%s\n", x.Fetched.String())
	fmt.Fprintf(w, "blocked\t%s\n", blocked)
	state := x.Robots.State
	if state == robotsUnavailable {
		state = "the server has none, all is allowed"
	}
	fmt.Fprintf(w, "robots.txt\t%s, fetched %s, Crawl-delay %g s\n",
		state, cmp.Or(dated(x.Robots.FetchedAt, 0), "never"), x.Robots.CrawlDelay)
	for _, sitemap := range x.Sitemaps {
		fmt.Fprintf(w, "sitemap\t%s\n", sitemap)
	}
	return w.Flush()
}

// noGroup says why the host is in no group.
func (x *explanation) noGroup() string {
	if x.Fetched.counts["dns"] > 0 {
		return "none: it had no address to ask when it was looked up"
	}
	return "not looked up"
}

// robotsUnavailable is the state of a robots.txt that was answered with 4xx.
const robotsUnavailable = "unavailable"

// roundUp makes dated round up, as the texts of reasons do: nothing is sent before that second.
const roundUp = time.Second - 1

// dated formats a time of the API in whole seconds, after adding round to it. It returns other text
// as it is.
func dated(text string, round time.Duration) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.Add(round).UTC().Format(time.RFC3339)
}

// notBefore says from when on something may be sent: a time, or "any time".
func notBefore(text string) string {
	if at, err := time.Parse(time.RFC3339, text); text == "" || err == nil && !at.After(time.Now()) {
		return "any time"
	}
	return dated(text, roundUp)
}
