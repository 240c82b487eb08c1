package resolver

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// ownCheck is how long the addresses of this machine are assumed to be unchanged.
const ownCheck = 5 * time.Second

// own holds the addresses of this machine's interfaces. It reads them again when it is used more
// than ownCheck after the last time. After an error the former addresses stay. Safe for concurrent
// use.
type own struct {
	read  func() ([]net.Addr, error)
	due   atomic.Bool // ownCheck has passed since they were read
	addrs atomic.Pointer[addressSet]
}

// addressSet is a set of addresses. It finds most addresses that are not in it by their last byte
// alone.
type addressSet struct {
	all       map[netip.Addr]struct{}
	lastBytes [256 / 64]uint64 // a bit for the last byte of each
}

func newAddressSet(addrs []netip.Addr) *addressSet {
	s := &addressSet{all: make(map[netip.Addr]struct{}, len(addrs))}
	for _, addr := range addrs {
		s.all[addr] = struct{}{}
		last := addr.As16()[15]
		s.lastBytes[last/64] |= 1 << (last % 64)
	}
	return s
}

func (s *addressSet) has(addr netip.Addr) bool {
	last := addr.As16()[15]
	if s.lastBytes[last/64]>>(last%64)&1 == 0 {
		return false
	}
	_, ok := s.all[addr]
	return ok
}

func newOwn(read func() ([]net.Addr, error)) *own {
	o := &own{read: read}
	o.addrs.Store(newAddressSet(nil))
	o.readAgain()
	return o
}

// has reports whether addr is an address of this machine. It does not block: if the addresses are
// due, it reads them again in the background.
func (o *own) has(addr netip.Addr) bool {
	if o.isDue() {
		go o.readAgain()
	}
	return o.addrs.Load().has(addr)
}

// refresh reads the addresses again if they are due. It may block.
func (o *own) refresh() {
	if o.isDue() {
		o.readAgain()
	}
}

// isDue reports whether the addresses are due. It returns true to one caller each time.
func (o *own) isDue() bool { return o.due.Load() && o.due.CompareAndSwap(true, false) }

func (o *own) readAgain() {
	time.AfterFunc(ownCheck, func() { o.due.Store(true) })
	list, err := o.read()
	if err != nil {
		return
	}
	var addrs []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, addr.Unmap())
			}
		}
	}
	o.addrs.Store(newAddressSet(addrs))
}
