package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
	"urlserver/internal/scope"
)

// crawlRow is a crawl of /api/crawls.
type crawlRow struct {
	SpiderID  string     `json:"spiderid"`
	AppID     string     `json:"appid"`
	CrawlID   string     `json:"crawlid"`
	State     string     `json:"state"`
	Scheduled uint64     `json:"scheduled"`
	AtSlots   uint64     `json:"at_slots"`
	AtClients uint64     `json:"at_clients"`
	Done      uint64     `json:"done"`
	Purged    uint64     `json:"purged"`
	Dropped   uint64     `json:"dropped"`
	Expires   *time.Time `json:"expires"`
}

type crawlList struct {
	Crawls []crawlRow
	All    int
	Note   string
}

// crawls returns the crawls with text in their names; "": all. The daemon returns at most 50.
func (c *client) crawls(ctx context.Context, text string) (list crawlList, err error) {
	if err := c.open(); err != nil {
		return list, err
	}
	_, err = c.callQuery(ctx, http.MethodGet, "/api/crawls", url.Values{"text": {text}}, &list)
	return list, err
}

// maxCrawlText is how many bytes /api/crawls looks for at most.
const maxCrawlText = 256

// searched returns what to look for in order to find a crawl ID: its start, if it is long.
func searched(id string) string {
	for len(id) > maxCrawlText {
		_, last := utf8.DecodeLastRuneInString(id)
		id = id[:len(id)-last]
	}
	return id
}

// crawl returns the one crawl with an ID. If app or spider is given, the crawl has to match it,
// too.
func (c *client) crawl(ctx context.Context, id, app, spider string) (found crawlRow, err error) {
	if id == "" {
		return found, clihelp.Usagef("the crawl ID is empty")
	}
	list, err := c.crawls(ctx, searched(id))
	if err != nil {
		return found, err
	}
	n := 0
	for _, row := range list.Crawls {
		if row.CrawlID == id && (app == "" || row.AppID == app) && (spider == "" || row.SpiderID == spider) {
			found = row
			n++
		}
	}
	switch {
	case n == 0 && app == "" && spider == "":
		return c.unlisted(ctx, id)
	case n == 0:
		return found, unknownCrawl(id)
	case n > 1:
		return found, fmt.Errorf("%d crawls are called %q; say which with --app and --spider", n, id)
	}
	return found, nil
}

func unknownCrawl(id string) error {
	return fmt.Errorf("the daemon knows no crawl %q; urlserver crawl list shows those that it lists", id)
}

// unlisted returns a crawl that no application submitted and no scope bounds. The list has no such
// crawls.
func (c *client) unlisted(ctx context.Context, id string) (row crawlRow, err error) {
	var of crawlOfID
	err = c.crawlOfID(ctx, id, &of)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.code == http.StatusNotFound {
		return row, unknownCrawl(id)
	}
	row = crawlRow{CrawlID: id, State: "running", Scheduled: of.Scheduled, AtSlots: of.InTransit, Done: of.Completed}
	if of.Scheduled+of.InTransit == 0 {
		row.State = "ended"
	}
	return row, err
}

func crawlListCommand() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "list [TEXT]",
		Short: "List crawls, those with most open documents first",
		Long: "Lists at most 50 crawls, those with most open documents first. With TEXT it lists only crawls " +
			"with TEXT in a name.\n" +
			"A crawl is listed if an application submitted it, or if it has or had a scope; crawl show " +
			"knows the others, too.\n" +
			"The counts may be some seconds old.",
		Example: "  urlserver crawl list\n  urlserver crawl list news",
		Args:    clihelp.Takes(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := ""
			if len(args) > 0 {
				text = args[0]
			}
			list, err := c.crawls(cmd.Context(), text)
			if err != nil {
				return err
			}
			return list.print(cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	return cmd
}

func (l *crawlList) print(out io.Writer) error {
	if l.Note != "" {
		fmt.Fprintln(out, l.Note)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CRAWL\tAPPLICATION\tSPIDER\tSTATE\tSCHEDULED\tGIVEN OUT\tCOMPLETED\tPURGED")
	for _, r := range l.Crawls {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", r.CrawlID, r.AppID, r.SpiderID, r.State,
			r.Scheduled, r.AtSlots+r.AtClients, r.Done, r.Purged)
	}
	if more := l.All - len(l.Crawls); more > 0 {
		fmt.Fprintf(w, "%d more: name a part of their names\n", more)
	}
	return w.Flush()
}

// which adds the flags that distinguish crawls with the same ID.
func which(cmd *cobra.Command, app, spider *string) {
	cmd.Flags().StringVar(app, "app", "", "application `ID` of the crawl")
	cmd.Flags().StringVar(spider, "spider", "", "`spiderid` of the crawl")
}

func crawlShowCommand() *cobra.Command {
	var c client
	var app, spider string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one crawl and the counts of its documents",
		Long: "Prints one crawl: its state, and the counts of its documents. If several " +
			"crawls have this ID,\n" +
			"--app and --spider name one of them.\n" +
			"Completed documents have ended, with any outcome. Purged documents were ended by the stop or\n" +
			"the expiry of an application's crawl and do not count as completed. For a crawl without an\n" +
			"application, completed counts all documents that have ended, and given out counts those in\n" +
			"slots and at clients.",
		Example: "  urlserver crawl show c1\n  urlserver crawl show c1 --json",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			row, err := c.crawl(cmd.Context(), args[0], app, spider)
			if err != nil {
				return err
			}
			shown := shownCrawl{crawlRow: row}
			if err := c.addScope(cmd.Context(), &shown); err != nil {
				return err
			}
			if !asJSON {
				return shown.print(cmd.OutOrStdout())
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(shown)
		},
	}
	c.flags(cmd)
	which(cmd, &app, &spider)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shownCrawl is a crawl with its scope. The counts of the scope are of all crawls with the ID.
type shownCrawl struct {
	crawlRow
	Scope      *scope.Scope      `json:"scope"` // nil: the daemon keeps none
	Weight     float64           `json:"weight"`
	OutOfScope uint64            `json:"out_of_scope"`
	Rules      map[string]uint64 `json:"rules"`
}

// crawlOfID is what /api/crawls/ID answers of all crawls with an ID.
type crawlOfID struct {
	Scope      *scope.Scope      `json:"scope"`
	Weight     float64           `json:"weight"`
	Scheduled  uint64            `json:"scheduled"`
	InTransit  uint64            `json:"in_transit"`
	Completed  uint64            `json:"completed"`
	OutOfScope uint64            `json:"out_of_scope"`
	Rules      map[string]uint64 `json:"rules"`
}

func (c *client) crawlOfID(ctx context.Context, id string, to *crawlOfID) error {
	_, err := c.callURL(ctx, http.MethodGet, c.crawlURL(id), "", nil, to)
	return err
}

// addScope asks for the scope of a crawl.
func (c *client) addScope(ctx context.Context, to *shownCrawl) error {
	var of crawlOfID
	err := c.crawlOfID(ctx, to.CrawlID, &of)
	to.Scope, to.Weight, to.OutOfScope, to.Rules = of.Scope, of.Weight, of.OutOfScope, of.Rules
	return err
}

// print prints the crawl as a table, one line for each value. Of a crawl that belongs to no application
// the daemon does not count which documents are at clients or purged.
func (r *shownCrawl) print(out io.Writer) error {
	expires := "never"
	if r.Expires != nil {
		expires = r.Expires.Format(time.RFC3339)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "crawl\t%s\n", r.CrawlID)
	if r.AppID != "" {
		fmt.Fprintf(w, "application\t%s\nspider\t%s\n", r.AppID, r.SpiderID)
	}
	fmt.Fprintf(w, "state\t%s\nexpires\t%s\nscheduled\t%d\n", r.State, expires, r.Scheduled)
	if r.AppID != "" {
		fmt.Fprintf(w, "in slots\t%d\nat clients\t%d\ncompleted\t%d\npurged\t%d\ndropped\t%d\n",
			r.AtSlots, r.AtClients, r.Done, r.Purged, r.Dropped)
	} else {
		fmt.Fprintf(w, "given out\t%d\ncompleted\t%d\ndropped\t%d\n", r.AtSlots+r.AtClients, r.Done, r.Dropped)
	}
	r.printScope(w)
	return w.Flush()
}

// printScope prints what bounds the crawl.
func (r *shownCrawl) printScope(w io.Writer) {
	s := r.Scope
	if r.Weight != 1 {
		fmt.Fprintf(w, "weight\t%v\n", r.Weight)
	}
	if s == nil || s.Empty() {
		fmt.Fprintln(w, "scope\tanything")
		return
	}
	for _, l := range []struct {
		name string
		list []string
	}{
		{"domains", s.Domains}, {"hosts", s.Hosts}, {"surts", s.SURTs}, {"allow", s.Allow}, {"deny", s.Deny},
		{"deny extensions", s.DenyExtensions},
	} {
		if len(l.list) > 0 {
			fmt.Fprintf(w, "%s\t%s\n", l.name, clihelp.Harmless(strings.Join(l.list, " ")))
		}
	}
	if s.MaxDepth != nil {
		fmt.Fprintf(w, "depth\tat most %d\n", *s.MaxDepth)
	}
	if s.MaxPages > 0 {
		fmt.Fprintf(w, "pages\tat most %d\n", s.MaxPages)
	}
	if s.MaxPagesDomain > 0 {
		fmt.Fprintf(w, "pages of a domain\tat most %d\n", s.MaxPagesDomain)
	}
	if !s.Until.IsZero() {
		fmt.Fprintf(w, "until\t%s\n", s.Until.Format(time.RFC3339))
	}
	fmt.Fprintf(w, "out of scope\t%d\n", r.OutOfScope)
	for _, rule := range slices.Sorted(maps.Keys(r.Rules)) {
		fmt.Fprintf(w, "  by %s\t%d\n", rule, r.Rules[rule])
	}
}

// closeID stops what has the ID of a crawl that was stopped and belongs to no application. From then on
// the index refuses what comes for the ID.
func (c *client) closeID(ctx context.Context, id string) error {
	var reply json.RawMessage
	_, err := c.callURL(ctx, http.MethodDelete, c.crawlURL(id), "", nil, &reply)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.code == http.StatusNotFound {
		return nil
	}
	return err
}

// onlyOne returns an error if crawls of several applications may have an ID: the list ends before
// all crawls that have it, or its start, in their names.
func (c *client) onlyOne(ctx context.Context, id string) error {
	text := searched(id)
	list, err := c.crawls(ctx, text)
	if err == nil && list.All > len(list.Crawls) {
		err = fmt.Errorf("%d crawls have %q in their names, too many to see whether several applications "+
			"have the ID; say which with --app and --spider", list.All, text)
	}
	return err
}

// crawlStopCommand takes requests, as submit and info do, or the ID of a crawl.
func crawlStopCommand() *cobra.Command {
	var app, spider string
	cmd := crawlVerb("stop", "Stop crawls for good", func(f fields) bool { return f.Action == "stop" })
	cmd.Use = "stop ID|FILE…|-"
	cmd.Long = "Stops crawls for good: the index refuses further URLs of them, and purges their waiting " +
		"documents. Spiders finish\n" +
		"the documents that they have. FILE, or - for standard input, has JSON requests, as urlserver\n" +
		"schema prints. " +
		"ID names a crawl; if a file of that name exists, the argument is FILE."
	cmd.Example = "  urlserver crawl stop c1\n  urlserver crawl stop c1 --app myapp"
	sendFiles := cmd.RunE
	var c client
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		info, err := os.Stat(args[0])
		if isFile := err == nil && !info.IsDir(); args[0] == "-" || isFile || len(args) > 1 {
			return sendFiles(cmd, args)
		}
		c.cmd, c.at, c.token = cmd, cmd.Flag("at").Value.String(), cmd.Flag("token").Value.String()
		row, err := c.crawl(cmd.Context(), args[0], app, spider)
		if err == nil && app+spider == "" {
			err = c.onlyOne(cmd.Context(), row.CrawlID)
		}
		if err != nil {
			return err
		}
		var reply json.RawMessage
		if row.AppID == "" {
			_, err := c.callURL(cmd.Context(), http.MethodDelete, c.crawlURL(row.CrawlID), "", nil, &reply)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", reply)
			return err
		}
		stop := map[string]string{"action": "stop", "uuid": "urlserver-crawl-stop", "appid": row.AppID,
			"spiderid": row.SpiderID, "crawlid": row.CrawlID}
		if err := c.post(cmd.Context(), "/api/actions", stop, &reply); err != nil {
			return err
		}
		if _, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", reply); err == nil && app+spider == "" {
			err = c.closeID(cmd.Context(), row.CrawlID)
		}
		return err
	}
	which(cmd, &app, &spider)
	return cmd
}
