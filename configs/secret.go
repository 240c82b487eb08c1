package configs

import (
	"fmt"
	"io"
)

// hidden stands where a secret would.
const hidden = "***"

// Secret is a token. No verb of fmt and no encoder shows it; string(s) is the
// token itself.
type Secret string

// String is "***", or "" if there is no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes String whatever the verb, so that not even %x shows a secret.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, s.String())
}

// MarshalText is String, so that encoders do not show a secret either.
func (s Secret) MarshalText() ([]byte, error) {
	return []byte(s.String()), nil
}

// Secrets returns all secrets that are set, for callers that keep them out of logs and errors.
func (c Config) Secrets() (list []string) {
	for _, s := range []Secret{c.HTTP.Token, c.Spider.Token, c.DocIndex.Token, c.Frontier.Token,
		c.Reservation.Token, c.Monitor.SASLPassword} {
		if s != "" {
			list = append(list, string(s))
		}
	}
	return list
}
