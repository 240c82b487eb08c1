package resolver

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// ownCheck is how long the addresses of this machine are taken to be as they were.
const ownCheck = 5 * time.Second

// own knows the addresses of this machine's interfaces. They are read again when somebody asks
// later than ownCheck after the last time; an error leaves the former ones. Safe for concurrent
// use.
type own struct {
	read    func() ([]net.Addr, error)
	start   time.Time
	checked atomic.Int64 // nanoseconds since start
	addrs   atomic.Pointer[map[netip.Addr]struct{}]
}

func newOwn(read func() ([]net.Addr, error)) *own {
	o := &own{read: read, start: time.Now()}
	o.addrs.Store(&map[netip.Addr]struct{}{})
	o.readAgain()
	return o
}

// has reports whether addr is an address of this machine. It does not block: it reads the addresses
// again in the background if they are due.
func (o *own) has(addr netip.Addr) bool {
	if o.isDue() {
		go o.readAgain()
	}
	_, ok := (*o.addrs.Load())[addr]
	return ok
}

// refresh reads the addresses again if they are due. It may block.
func (o *own) refresh() {
	if o.isDue() {
		o.readAgain()
	}
}

// isDue is true for one caller each time.
func (o *own) isDue() bool {
	last, now := o.checked.Load(), int64(time.Since(o.start))
	return now-last >= int64(ownCheck) && o.checked.CompareAndSwap(last, now)
}

func (o *own) readAgain() {
	list, err := o.read()
	if err != nil {
		return
	}
	addrs := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs[addr.Unmap()] = struct{}{}
			}
		}
	}
	o.addrs.Store(&addrs)
}
