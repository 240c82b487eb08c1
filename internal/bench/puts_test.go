package main

import (
	"strings"
	"testing"
)

// All kinds of puts store the same new URLs.
func TestPuts(t *testing.T) {
	b := testBench(t)
	plain, via := linkBodies(false)[:2], linkBodies(true)[:2]
	for _, index := range []string{"memory", "disk"} {
		for i, k := range putKinds {
			bodies := plain
			if k.via {
				bodies = via
			}
			r, err := runPuts(t.Context(), b, index, k, bodies, 0)
			if err != nil || r.rate <= 0 {
				t.Fatalf("%s, %s: %+v, %v", index, k.name, r, err)
			}
			line := putRow(index, k, []putRun{r}, []putRun{r}).String()
			compared := strings.Contains(line, "1.00 of its rate")
			if compared == (k.beside == i) || !strings.Contains(line, k.name) {
				t.Errorf("%s", line)
			}
		}
	}
}
