package configs

import (
	"maps"
	"slices"
	"strings"
)

// maxSlips bounds the distance between an unknown name and the guess.
const maxSlips = 3

// hint returns a guess at what an unknown name was meant to be, as the end of
// an error message; "" if there is none. The nearest by spelling comes first, then the
// right key in the wrong table.
func (r *reader) hint(name string) string {
	best, least := "", maxSlips+1
	var elsewhere []string
	for _, known := range r.names() {
		last := lastPart(known)
		if d := distance(name, lower(known), least); d < least && d*2 < len(last) {
			best, least = known, d
		}
		if lower(last) == lastPart(name) {
			elsewhere = append(elsewhere, known)
		}
	}
	switch {
	case best != "":
		return "; did you mean " + best
	case elsewhere != nil:
		return " there; did you mean " + strings.Join(elsewhere, " or ") + where(elsewhere[0])
	}
	return ""
}

// names are those of all settings, then of the keys of rules, then of all tables.
func (r *reader) names() []string {
	var all []string
	for _, s := range settings() {
		all = append(all, s.name)
	}
	for _, k := range ruleKeys {
		all = append(all, k.name)
	}
	return append(all, slices.Sorted(maps.Keys(r.sections))...)
}

// where returns where in the file a setting has to stand that is in no table;
// "" for the others.
func where(name string) string {
	if strings.Contains(name, ".") {
		return ""
	}
	return ", which stands above the first [table]"
}

func lastPart(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// distance is how many bytes must be put in, left out, changed or swapped with
// their neighbour to make b of a, but at most most.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var before []int // the row above last, for swaps
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+differ(a[i], b[j]))
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		if slices.Min(row) >= most {
			return most
		}
		before, last = last, row
	}
	return min(last[len(b)], most)
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
