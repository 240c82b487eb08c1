package access

import (
	"strconv"
	"strings"
)

// Hidden is err with stars in its text wherever that repeats the secret, plain or quoted, as the words of a peer may that
// was told it. errors.Is and errors.As find in it what they find in err; nil stays nil.
func Hidden(err error, secret string) error {
	if err == nil || secret == "" {
		return err
	}
	quoted := strconv.Quote(secret)
	text := strings.NewReplacer(secret, "***", quoted[1:len(quoted)-1], "***").Replace(err.Error())
	if text == err.Error() {
		return err
	}
	return &hidden{err, text}
}

type hidden struct {
	err  error
	text string
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }
