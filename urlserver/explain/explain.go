// Package explain phrases why nothing is sent to a host now. The engine, the daemon and the doc
// index find a Reason; only this package turns it into words. Code decides on the Kind of a Reason,
// never on its text.
package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"urlserver/hostslots"
)

// Reason is one thing that is to be known about why nothing is sent to a host. The zero value is
// none.
type Reason struct {
	Kind  Kind
	Until time.Time // until when it holds, if that is known
	By    string    // the rule, the setting, the error or the party that causes it
	Args  []any     // further values, in the order in which the words number them
}

// String phrases the reason. "" is none.
func (r Reason) String() string {
	if !strings.Contains(words[r.Kind], "{") {
		return words[r.Kind]
	}
	pairs := []string{"{until}", Dated(r.Until), "{by}", r.By}
	for i, arg := range r.Args {
		if t, ok := arg.(time.Time); ok {
			arg = Dated(t)
		}
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", fmt.Sprint(arg))
	}
	return strings.NewReplacer(pairs...).Replace(words[r.Kind])
}

// Text phrases reasons one after the other and leaves out those that are none.
func Text(reasons []Reason) string {
	var parts []string
	for _, r := range reasons {
		if text := r.String(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// Dated formats the first whole second that is not before t, in UTC.
func Dated(t time.Time) string {
	return t.Add(time.Second - 1).UTC().Format(time.RFC3339)
}

// OtherRule names, as the By of a reason, a rule that applies to another host of the group.
func OtherRule(group string) string { return "a rule for another host on " + group }

// AllRules names, as the By of a reason, the rules that raise the limits of an address.
func AllRules(address string) string { return "the rules for all hosts on " + address }

// SharedNetwork names, as the By of a reason, the limits of a shared network.
const SharedNetwork = "the limits of the shared network"

// LevelName is what texts call a level.
func LevelName(l hostslots.Level) string {
	if l == hostslots.NetworkLevel {
		return "shared network"
	}
	return l.String()
}

// List names several things, as the By of a reason.
func List(names []string) string { return strings.Join(names, ", ") }

// ItsAddress names, as the By of a reason, the address of a host.
const ItsAddress = "its address"
