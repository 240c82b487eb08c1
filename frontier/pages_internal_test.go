package frontier

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// numbers is a page of a list that counts how often it has begun.
func numbers(of string, start uint64, begun *int) *page {
	return &page{of: listed{key: of}, start: start, size: 10, send: func(row) error { return nil },
		list: func(ctx context.Context, visit func(row) bool) error {
			*begun++
			for visit(row{}) {
			}
			return ctx.Err()
		}}
}

// Lists stay open for a bounded time, and a bounded number of them.
func TestListsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o openLists
		begun := 0
		get := func(of string, start uint64, want int) {
			t.Helper()
			if _, err := o.send(t.Context(), numbers(of, start, &begun)); err != nil || begun != want {
				t.Fatalf("list %s from row %d: %v, lists begun: %d; want %d", of, start, err, begun, want)
			}
		}
		get("a", 0, 1)
		time.Sleep(openLife)
		get("a", 10, 1)
		time.Sleep(openLife + 1)
		get("a", 20, 2)
		for of := range maxOpen {
			get(fmt.Sprint(of), 0, 3+of)
		}
		get("0", 10, 2+maxOpen)
		get("a", 30, 3+maxOpen) // the oldest was closed
		o.closeAll()
		get("0", 20, 4+maxOpen)
		o.closeAll() // else the list outlives the test
	})
}

// A call that ends ends its list.
func TestListEndsWithCall(t *testing.T) {
	var o openLists
	begun := 0
	ctx, cancel := context.WithCancel(t.Context())
	p := numbers("a", 0, &begun)
	p.send = func(row) error { cancel(); return nil }
	if _, err := o.send(ctx, p); err != context.Canceled || len(o.lists) != 0 {
		t.Errorf("a canceled page: %v, %d lists are open; want none", err, len(o.lists))
	}
}

// Lists that nobody goes on with close by themselves.
func TestListsCloseUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o openLists
		begun := 0
		for of := range 3 {
			if _, err := o.send(t.Context(), numbers(fmt.Sprint(of), 0, &begun)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(openLife / 2)
		}
		time.Sleep(2 * openLife)
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.lists) != 0 {
			t.Errorf("%d lists are open long after their last page; want none", len(o.lists))
		}
	})
}
