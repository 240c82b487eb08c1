// Package lazyconn creates the client of a store on first use, so that a service can start before
// its store.
package lazyconn

import (
	"errors"
	"sync"
	"time"
)

const retryDial = time.Second // the least time between two attempts

// Client is a client of a store, which reconnects by itself after it was created. It is safe for
// concurrent use.
type Client[T interface{ Close() error }] struct {
	Dial func() (T, error)

	mu     sync.Mutex // guards all below; held while the client is created
	client T
	made   bool
	failed time.Time // time of the last failure
	err    error
}

var errClosed = errors.New("reservation store is closed")

// Get returns the client. While the store does not answer, one caller a second tries to create it,
// and the others get that caller's error.
func (c *Client[T]) Get() (client T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(c.err, errClosed), !c.made && c.err != nil && time.Since(c.failed) < retryDial:
		return client, c.err
	case c.made:
		return c.client, nil
	}
	if c.client, c.err = c.Dial(); c.err != nil {
		c.failed = time.Now()
		return client, c.err
	}
	c.made = true
	return c.client, nil
}

// Close closes all connections. Get fails after it.
func (c *Client[T]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made {
		c.client.Close()
	}
	c.made, c.err = false, errClosed
}
