package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// result is the result of a crawl.
type result struct {
	verdict
	wrong    faults // documents with another outcome than the plan says, or with none
	twice    faults // documents with two outcomes
	whole    bool   // the crawl is complete
	others   bool   // the spiders were other people's
	problems int    // faults of all kinds
}

func (c *crawl) result(whole bool) result {
	r := result{verdict: c.oracle.judge(c.plan, whole), wrong: c.docIndex.judge(c.plan, whole), whole: whole}
	c.docIndex.mu.Lock()
	r.twice = c.docIndex.repeated
	c.docIndex.mu.Unlock()
	if r.others = c.others; r.others { // which links another spider follows is its own business
		r.missed, r.stray, r.wrong = faults{}, faults{}, faults{}
	}
	for _, f := range []faults{r.impolite, r.missed, r.repeated, r.stray, r.wrong, r.twice} {
		r.problems += f.count
	}
	return r
}

// String returns the result in one line.
func (r result) String() string {
	switch {
	case r.problems > 0:
		return fmt.Sprintf("%d faults, see above", r.problems)
	case !r.whole:
		return "ended early; nothing wrong so far"
	case r.others:
		return "politeness was kept; no page was fetched more than once"
	}
	return "politeness was kept; each reachable page was fetched once, and nothing else"
}

// report writes the results of a crawl; the table comes last.
func (c *crawl) report(out io.Writer, r result) error {
	var b strings.Builder
	c.summary(&b)
	b.WriteString("\n")
	for _, f := range []string{
		r.impolite.list("politeness broken"), r.missed.list("reachable and missed"),
		r.repeated.list("fetched more than once"),
		r.stray.list("fetched though not linked, or against robots.txt"), r.wrong.list("ended wrong"),
		r.twice.list("ended twice"),
	} {
		b.WriteString(f)
	}
	fmt.Fprintf(&b, "%v\n\n", r)
	fmt.Fprintf(&b, legend, tolerance)
	table(&b, c.oracle.rows())
	_, err := io.WriteString(out, b.String())
	return err
}

func (c *crawl) summary(b *strings.Builder) {
	pages, others := c.oracle.counts()
	fmt.Fprintf(b, "%s: %d hosts on %d addresses, port %d, crawled in %v\n",
		c.web.title, len(c.web.hosts), len(c.web.addrs()), c.web.port, c.took.Round(time.Millisecond))
	ends, count := c.docIndex.countEnds()
	for _, e := range ends {
		fmt.Fprintf(b, "  %-10s %6d\n", e, count[e])
	}
	fmt.Fprintf(b, "%d documents ended, of %d known to the demo; %d pages and %d times robots.txt asked "+
		"for; %d queries to the name server\n",
		c.docIndex.ended(), len(c.plan.ends), pages, others, c.names.asked.Load())
	if n := c.docIndex.skipped(); n > 0 {
		fmt.Fprintf(b, "%d links to addresses outside of the demo were left alone\n", n)
	}
	late, longest := 0, time.Duration(0)
	for _, r := range c.oracle.rows() {
		late += r.late
		longest = max(longest, r.longest)
	}
	fmt.Fprintf(b, "slowest way from daemon to web server: %v", round(longest))
	if late > 0 {
		fmt.Fprintf(b, "; %d requests look too early because the one before was late on it", late)
	}
	b.WriteString("\n")
}

// legend explains the table.
const legend = `Gaps are those between two requests to an address, or to one site there: of all these, the
one that came closest to "gap allowed". That is the least at that moment: by rate, or by the
site's Crawl-delay or backing off. "smallest gap seen" counts from when the first of the two
left the daemon; "at the server" is the same gap at the web server, where a request that was
late on its way makes the next one look early. A gap passes if it is at most %v less than allowed.
`

// table writes a row for each address.
func table(b *strings.Builder, rows []row) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "address\thosts\tpages\tsmallest gap seen\tgap allowed\tat the server\tmost open")
	for _, r := range rows {
		seen, left, allowed := "-", "-", r.allowed()
		if r.tight.allowed > 0 {
			seen, left, allowed = seconds(r.tight.seen), seconds(r.tight.left), r.tight.allowed
		}
		fmt.Fprintf(t, "%v\t%d\t%d\t%s\t%s\t%s\t%d\n", r.addr, r.hosts, r.pages, left, seconds(allowed),
			seen, r.most)
	}
	t.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.4fs", d.Seconds()) }
