package explain

import (
	"fmt"
	"strings"

	"urlserver/docindex"
)

// Available is the reason why the doc index does not give out documents of a host now. rule names
// the rule of the settings that applies to the host, or is "". The reason is none if it gives out
// documents.
func Available(t *docindex.Availability, rule string) Reason {
	text := Wait(&t.Wait, rule)
	switch {
	case text == "":
		return Reason{}
	case t.Wait.Rule == docindex.WaitOverBudget && !t.NotBefore.IsZero():
		return Reason{Kind: OverBudget, Until: t.NotBefore, By: text}
	case t.Open || t.NotBefore.IsZero():
		return Reason{Kind: InIndex, By: text}
	}
	return Reason{Kind: NotBefore, Until: t.NotBefore, By: text}
}

// SameAvailability reports whether Available has the same text for both.
func SameAvailability(a, b *docindex.Availability) bool {
	return a.Open == b.Open && a.Wait == b.Wait && Dated(a.NotBefore) == Dated(b.NotBefore)
}

// Wait phrases a rule of the doc index. rule is as for Available.
func Wait(w *docindex.Wait, rule string) string {
	if rule == "" {
		rule = "a rule"
	}
	queue := ""
	if w.Crawl != "" {
		queue = fmt.Sprintf(" in crawl %.100q", w.Crawl)
	}
	switch w.Rule {
	case docindex.WaitLimit:
		return fmt.Sprintf("the limit of its queue%s, %d completed URLs, is reached "+
			"(SetCrawlLimit)", queue, w.Count)
	case docindex.WaitRuleBlocks:
		return "blocked by " + rule
	case docindex.WaitQueueBlocked:
		return fmt.Sprintf("its queue%s is blocked (BlockQueueUntil)", queue)
	case docindex.WaitRuleGap:
		return fmt.Sprintf("%s, one giving in %v", rule, w.Gap)
	case docindex.WaitQueueDelayInSlots:
		return fmt.Sprintf("one at a time, by the delay of its queue%s, %v (SetDelay)", queue, w.Gap)
	case docindex.WaitQueueDelay:
		return fmt.Sprintf("the delay of its queue%s, %v (SetDelay)", queue, w.Gap)
	case docindex.WaitOverBudget:
		return fmt.Sprintf("its domain %s%s is over its budget: round %d, again after about %d pages "+
			"of other domains, or when those have nothing due (crawl.budget)", w.Name, queue, w.Round, w.Count)
	case docindex.WaitDomain:
		return fmt.Sprintf("%d documents of its domain %s%s are at host slots, enough for now", w.Count,
			w.Name, queue)
	case docindex.WaitPassedOver:
		return fmt.Sprintf(
			"nothing of its queue%s could be given a moment ago: all were on hosts that "+
				"may not be asked yet", queue)
	}
	if w.Rule == docindex.WaitAddress || w.Rule == docindex.WaitAddressInUse {
		return addressWait(w)
	}
	replace := strings.NewReplacer("{count}", fmt.Sprint(w.Count), "{gap}", w.Gap.String())
	return replace.Replace(waitWords[w.Rule])
}

// addressWait phrases what the site, the address or the shared network of a queue allows.
func addressWait(w *docindex.Wait) string {
	level := [...]string{"site", "address", "shared network"}[w.Level]
	switch {
	case w.Rule == docindex.WaitAddressInUse:
		return fmt.Sprintf("clients of the URL Frontier have URLs of as many queues at the %s %s "+
			"as may be open there", level, w.Name)
	case w.Sites != "":
		return Reason{Kind: PaceAddressBackoff, By: w.Sites, Args: []any{w.Gap, w.Name}}.String()
	}
	text := fmt.Sprintf("the pace of the %s %s, one request in %v", level, w.Name, w.Gap)
	if w.Level != docindex.SiteWait {
		text += " to all its sites"
	}
	if w.Count > 1 {
		text += fmt.Sprintf("; %d queues take turns there", w.Count)
	}
	return text
}

// waitWords are the texts of rules that need neither a queue nor a rule of the settings.
var waitWords = map[docindex.WaitRule]string{
	docindex.WaitNothingScheduled: "nothing of it is scheduled",
	docindex.WaitBeingServed:      "a client of the URL Frontier is being given some of it",
	docindex.WaitHostBlocked:      "blocked by the operator",
	docindex.WaitAtFrontier: "{count} of its documents are with clients of the URL Frontier, " +
		"until they report them or their leases end",
	docindex.WaitAtSlots: "{count} of its documents are at host slots, for line spiders",
	docindex.WaitRemote: "{count} of its documents are with daemons that took them over HTTP, " +
		"until they report them or their leases end",
	docindex.WaitHostDelayInSlots: "one at a time, by the operator's delay of {gap}",
	docindex.WaitHostDelay:        "the operator's delay of {gap}",
	docindex.WaitHostPaused: "the slots asked it lately: its pace, its robots.txt " +
		"or its Retry-After says so",
	docindex.WaitHostGap: "its site wants {gap} between two requests (Crawl-delay or backing off)",
	docindex.WaitSlotGap: "others asked it lately, and the slots keep {gap} between two requests " +
		"(Req_Host_Per_Sec)",
	docindex.WaitAllDelayed: "the delay of all queues, {gap} (SetDelay without a key, or the usual one)",
	docindex.WaitScheduled:  "the first of its documents is scheduled for then",
	docindex.WaitShapes: "its links take turns by the shapes of their URLs, so {count} of its documents at " +
		"host slots are enough for now",
	docindex.WaitTurnOver: "spiders and clients of the URL Frontier take turns at the host: the others are " +
		"next, when all that is out has come back",
	docindex.WaitOthersTurn: "spiders and clients of the URL Frontier take turns at the host, and now " +
		"it is kept for the others",
	docindex.WaitAddressUnknown: "its name is being looked up (frontier.addresses)",
	docindex.WaitInactive:       "clients are given nothing at all (SetActive)",
}

// Stored is what the doc index knows of a host of which the daemon holds nothing. waits is why
// nothing of it comes from the index now. It is nil if the index knows nothing.
func Stored(l *docindex.HostStatus, waits []Reason) []Reason {
	if out := l.Transit.Slots + l.Transit.Frontier + l.Transit.Remote; out > 0 {
		reasons := []Reason{{Kind: OutElsewhere, By: outText(&l.Transit), Args: []any{out}}}
		if l.Scheduled > 0 {
			reasons = append(reasons, Reason{Kind: MoreWait, Args: []any{atLeast(l, l.Scheduled)}})
		}
		return append(reasons, waits...)
	}
	switch {
	case l.Scheduled > 0:
		return append([]Reason{{Kind: OnlyInIndex, Args: []any{atLeast(l, l.Scheduled)}}}, waits...)
	case l.Completed > 0:
		reasons := []Reason{{Kind: AllCompleted, Args: []any{atLeast(l, l.Completed)}}}
		if l.Delay > 0 {
			reasons = append(reasons, Reason{Kind: DelayKept, Args: []any{l.Delay}})
		}
		return reasons
	case !l.Blocked.IsZero():
		return []Reason{{Kind: BlockedAndUnknown, Until: l.Blocked}}
	case l.Delay > 0:
		return []Reason{{Kind: DelayedAndUnknown, Args: []any{l.Delay}}}
	}
	return nil
}

// Turns is why documents of a host wait in the doc index for their turn, while the daemon holds
// others. rule is as for Available. It is nil if they do not.
func Turns(l *docindex.HostStatus, rule string) []Reason {
	if l.Scheduled == 0 {
		return nil
	}
	switch l.AtSlots.Wait.Rule {
	case docindex.WaitOverBudget, docindex.WaitDomain, docindex.WaitShapes:
		return []Reason{{Kind: MoreWait, Args: []any{atLeast(l, l.Scheduled)}}, Available(&l.AtSlots, rule)}
	}
	return nil
}

// atLeast is a count of documents, which may be too low if the host has many queues.
func atLeast(l *docindex.HostStatus, n uint64) string {
	if l.Truncated {
		return fmt.Sprintf("at least %d", n)
	}
	return fmt.Sprint(n)
}

func outText(out *docindex.TransitCounts) string {
	var parts []string
	for _, p := range []struct {
		n   uint64
		who string
	}{
		{out.Frontier, "clients of the URL Frontier"},
		{out.Remote, "daemons that took them as candidates over HTTP"},
		{out.Slots, "the slots of another daemon on this index, or on their way " +
			"between it and those of this one"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d with %s", p.n, p.who))
		}
	}
	return strings.Join(parts, ", ")
}
