package clihelp

import (
	"errors"
	"fmt"
	"testing"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{name: "done"},
		{name: "failed", err: errors.New("x"), want: 1},
		{name: "usage", err: fmt.Errorf("y: %w", Usagef("x")), want: 2},
	} {
		if got := ExitStatus(c.err); got != c.want {
			t.Errorf("%s: status %d; want %d", c.name, got, c.want)
		}
	}
}
