package netguard_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"urlserver/internal/netguard"
)

func TestHidden(t *testing.T) {
	for _, c := range []struct{ name, secret, text, want string }{
		{name: "repeated", secret: "s3cret", text: "who is s3cret? s3cret!", want: "who is ***? ***!: EOF"},
		{name: "not in it", secret: "s3cret", text: "who is there?", want: "who is there?: EOF"},
		{name: "no secret", secret: "", text: "who is there?", want: "who is there?: EOF"},
		{name: "quoted", secret: `a"b\c`, text: fmt.Sprintf("who is %q?", `AUTH a"b\c`),
			want: `who is "AUTH ***"?: EOF`},
		{name: "to be quoted, as it is", secret: `a"b\c`, text: `who is a"b\c?`, want: `who is ***?: EOF`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := netguard.Redact(fmt.Errorf("%s: %w", c.text, io.EOF), c.secret)
			if err.Error() != c.want || !errors.Is(err, io.EOF) {
				t.Errorf("%v, io.EOF: %t; want %s, true", err, errors.Is(err, io.EOF), c.want)
			}
		})
	}
	if err := netguard.Redact(nil, "s3cret"); err != nil {
		t.Errorf("no error is %v", err)
	}
}
