package configs

import (
	"slices"
	"testing"
)

func TestSecretsAreAll(t *testing.T) {
	c := Default()
	for _, s := range settings() {
		if !s.secret {
			continue
		}
		if err := s.read(&c, "of-"+s.name); err != nil {
			t.Fatal(err)
		}
		if got := c.Secrets(); !slices.Contains(got, "of-"+s.name) {
			t.Errorf("Secrets = %q; want %s among them", got, s.name)
		}
	}
	if got := Default().Secrets(); len(got) > 0 {
		t.Errorf("Secrets of the default = %q", got)
	}
}
