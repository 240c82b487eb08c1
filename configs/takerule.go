package configs

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// draft is the rule whose keys are being read.
type draft struct {
	HostRule
	line int            // of its [[rules]]
	said map[string]int // line of each of its keys
	bad  bool           // it has a mistake
}

// beginRule begins with the keys below a [[rules]].
func (r *reader) beginRule(e entry) {
	r.endRule()
	if r.rulesAt == 0 && r.set[rulesKey] != 0 {
		r.broken = true
		r.mistake(e.line, rulesKey, fmt.Sprintf("already set on line %d", r.set[rulesKey]), "")
	}
	if r.rulesAt == 0 {
		r.rulesAt = e.line
		r.set[rulesKey] = e.line
	}
	r.rule = &draft{line: e.line, said: map[string]int{}}
}

// endRule adds the rule that has been read. If one of its keys is a mistake, endRule does not
// report what the rule lacks.
func (r *reader) endRule() {
	d := r.rule
	if d == nil {
		return
	}
	r.rule = nil
	fault, allowed := saidFault(d.said)
	if fault = cmp.Or(fault, d.contradiction()); fault != "" && !d.bad {
		if d.bad = true; !r.broken {
			r.mistake(d.line, rulesKey, fault, allowed)
		}
	}
	if d.bad {
		r.bad[rulesKey] = true
		return
	}
	r.config.Rules = append(r.config.Rules, d.HostRule)
}

// isOfRule reports whether an entry is a key below [[rules]].
func (r *reader) isOfRule(e entry) bool {
	return r.rulesAt != 0 && e.parent == 1 && lower(e.path[0]) == rulesKey
}

// takeOfRule puts one key into the rule that is being read.
func (r *reader) takeOfRule(e entry) {
	written := e.path.String()
	name := lower(written)
	d := r.rule
	k, ok := findRuleKey(name)
	switch {
	case d == nil: // its header is wrong; that mistake is listed already
	case !ok:
		d.bad = true
		d.said[name] = e.line
		r.mistake(e.line, shown(written), "no such key"+r.hint(name), "")
	case d.said[name] != 0:
		r.broken, d.bad = true, true
		r.mistake(e.line, k.name, fmt.Sprintf("already set on line %d", d.said[name]), "")
	default:
		d.said[name] = e.line
		r.assignRule(d, k, e)
	}
}

func (r *reader) assignRule(d *draft, k ruleKey, e entry) {
	v, line, err := decode(e)
	if err != nil {
		r.broken = true
	} else if err = k.read(&d.HostRule, v); err == nil {
		if fault := k.fault(d.HostRule); fault != "" {
			err = errors.New(fault)
		}
	}
	if err != nil {
		d.bad = true
		r.mistake(line, k.name, strings.TrimSpace(err.Error()), k.allowed)
	}
}
