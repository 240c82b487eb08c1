// Package lazy makes the client of a store when it is first needed, so that a service can start before its store.
package lazy

import (
	"errors"
	"sync"
	"time"
)

const retryDial = time.Second // no sooner after a store that was not there

// Client is a client of a store, which connects again by itself once it is made. It is safe for concurrent use.
type Client[T interface{ Close() error }] struct {
	Dial func() (T, error)

	mu     sync.Mutex // guards all below; held while the client is made
	client T
	made   bool
	failed time.Time // when that went wrong
	err    error
}

var errClosed = errors.New("reservation store is closed")

// Get returns the client. While the store is away, one caller a second tries, and the others are told what it met.
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

// Close ends all connections. Get fails after it.
func (c *Client[T]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made {
		c.client.Close()
	}
	c.made, c.err = false, errClosed
}
