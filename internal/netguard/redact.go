package netguard

import (
	"strconv"
	"strings"
)

// Redact returns err with "***" in its text in place of the secret, plain or quoted: the error
// message of a peer that received the secret may repeat it. errors.Is and errors.As see err. Redact
// returns nil for nil.
func Redact(err error, secret string) error {
	if err == nil || secret == "" {
		return err
	}
	quoted := strconv.Quote(secret)
	text := strings.NewReplacer(secret, "***", quoted[1:len(quoted)-1], "***").Replace(err.Error())
	if text == err.Error() {
		return err
	}
	return &redacted{err, text}
}

type redacted struct {
	err  error
	text string
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }
