package frontier

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// numbers is a page of a list that counts how often it has begun.
func numbers(of int, start uint64, begun *int) *page[int, int] {
	return &page[int, int]{of: of, start: start, size: 10, send: func(int) error { return nil },
		list: func(ctx context.Context, row func(int) bool) error {
			*begun++
			for i := 0; row(i); i++ {
			}
			return ctx.Err()
		}}
}

// Lists stay open for a bounded time, and a bounded number of them.
func TestListsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o openLists[int, int]
		begun := 0
		get := func(of int, start uint64, want int) {
			t.Helper()
			if _, err := o.send(t.Context(), numbers(of, start, &begun)); err != nil || begun != want {
				t.Fatalf("list %d from row %d: %v, lists begun: %d; want %d", of, start, err, begun, want)
			}
		}
		get(0, 0, 1)
		time.Sleep(openLife)
		get(0, 10, 1)
		time.Sleep(openLife + 1)
		get(0, 20, 2)
		for of := range maxOpen {
			get(1+of, 0, 3+of)
		}
		get(1, 10, 2+maxOpen)
		get(0, 30, 3+maxOpen) // the oldest was closed
		o.closeAll()
		get(1, 20, 4+maxOpen)
		o.closeAll() // else the list outlives the test
	})
}

// A call that ends ends its list.
func TestListEndsWithCall(t *testing.T) {
	var o openLists[int, int]
	begun := 0
	ctx, cancel := context.WithCancel(t.Context())
	p := numbers(0, 0, &begun)
	p.send = func(int) error { cancel(); return nil }
	if _, err := o.send(ctx, p); err != context.Canceled || len(o.lists) != 0 {
		t.Errorf("a canceled page: %v, %d lists are open; want none", err, len(o.lists))
	}
}
