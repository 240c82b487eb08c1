package reservation

import (
	"context"
	"time"
)

// Held is how many documents a crawler holds for a host.
type Held struct {
	Host      string
	Documents int
}

// Counter is a Store that counts the documents that crawlers hold. It is safe for concurrent use.
type Counter interface {
	// Hold tells what a crawler, named by holder, holds for some hosts; what it told of others before stays. A host that
	// documents are held for is known, as after AddHost, and leaves when there are none and nobody has it reserved. All that
	// the crawler has told is forgotten after ttl without another Hold; then, and under a new name, first has to be set.
	// known is false, and nothing is counted, where it was not and there is nothing of this holder.
	Hold(ctx context.Context, holder string, first bool, ttl time.Duration, held []Held) (known bool, err error)
}
