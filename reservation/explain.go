package reservation

// The rules that an Explanation names.
const (
	RuleUnknown   = "this host was not added"
	RuleBusy      = "it is reserved; the time is the end of the lease"
	RuleGroupBusy = "its group is reserved on another host; the time is the end of that lease"
	RuleNext      = "its group was asked, and may not be asked again sooner"
	RuleDue       = "nothing is to be done for it sooner"
	RuleReady     = "it is due, and is served when its turn comes"
)

// As returns a copy of the explanation with these fields set. until is in ms since 1970.
func (x Explanation) As(state State, until int64, rule, holder string) Explanation {
	x.State, x.Until, x.Rule, x.Holder = state, Time(until), rule, holder
	return x
}

// Idle explains a host that was added and whose group has no lease. The host is due at due, and its
// group may be asked at next, all in ms since 1970.
func (x Explanation) Idle(now, due, next int64) Explanation {
	switch {
	case next > now && next >= due:
		return x.As(Waiting, next, RuleNext, "")
	case due > now:
		return x.As(Waiting, due, RuleDue, "")
	}
	return x.As(Ready, 0, RuleReady, "")
}
