package resolver

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// interfaces simulates a machine whose addresses change.
type interfaces struct{ addrs atomic.Pointer[[]net.Addr] }

func (i *interfaces) set(addrs ...string) {
	var list []net.Addr
	for _, a := range addrs {
		list = append(list, &net.IPNet{IP: net.ParseIP(a), Mask: net.CIDRMask(8, 128)})
	}
	i.addrs.Store(&list)
}

func (i *interfaces) read() ([]net.Addr, error) {
	if list := i.addrs.Load(); list != nil {
		return *list, nil
	}
	return nil, errors.New("no interfaces")
}

// TestOwnAddresses: a public address of the machine is refused like a private one, as a literal, as
// IPv4 within IPv6, and by name. The same holds for an address that becomes the machine's own while
// its name is cached, and no longer once the machine has lost it.
func TestOwnAddresses(t *testing.T) {
	machine := new(interfaces)
	machine.set("93.184.216.34", "2600::1")
	s := serve(t, zone("a.test 60 A 93.184.216.34", "b.test 60 A 93.184.216.35"))
	cfg := patient(s)
	cfg.Interfaces = machine.read
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := func(host string, want error) {
		t.Helper()
		if _, err := r.Lookup(t.Context(), host); !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", host, err, want)
		}
		if _, err, ok := r.Cached([]byte(host)); ok && !errors.Is(err, want) {
			t.Errorf("%s is remembered: %v; want %v", host, err, want)
		}
	}
	for _, host := range []string{"93.184.216.34", "2600::1", "64:ff9b::5db8:d822",
		"2002:5db8:d822::1", "a.test"} {
		want(host, ErrRefused)
	}
	want("b.test", nil)
	want("93.184.216.35", nil)
	machine.set("93.184.216.35")
	want("b.test", nil) // read a moment ago
	r.nets.own.due.Store(true)
	want("b.test", ErrRefused)
	want("93.184.216.35", ErrRefused)
	machine.set("2600::1")
	r.nets.own.readAgain()
	want("b.test", nil)
	if r.IsOwn(netip.MustParseAddr("93.184.216.35")) || !r.IsOwn(netip.MustParseAddr("2600::1")) {
		t.Error("the machine's own address is not the one that it has by now")
	}
	cfg.AllowNetworks = prefixes("93.184.216.0/24 2600::/16")
	machine.set("93.184.216.34", "2600::1")
	if r, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, host := range []string{"93.184.216.34", "2600::1", "a.test"} {
		want(host, nil)
	}
	if r.IsOwn(netip.MustParseAddr("2600::1")) {
		t.Error("an address that is let in is not to be asked")
	}
}

// TestOwnIsReadAgain: callers do not wait while addresses are read. After an error the former
// addresses stay.
func TestOwnIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := new(interfaces)
		machine.set("9.9.9.9")
		start, o := time.Now(), newOwn(machine.read)
		nine, eight := netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("8.8.8.8")
		want := func(isNine, isEight bool) {
			t.Helper()
			synctest.Wait()
			if o.has(netip.MustParseAddr("7.7.7.9")) || o.has(netip.MustParseAddr("2600::9")) {
				t.Errorf("after %v: has an address with the last byte of another", time.Since(start))
			}
			if o.has(nine) != isNine || o.has(eight) != isEight {
				t.Errorf("after %v: 9.9.9.9 %t, 8.8.8.8 %t; want %t, %t", time.Since(start), !isNine,
					!isEight, isNine, isEight)
			}
		}
		machine.set("8.8.8.8")
		want(true, false)
		time.Sleep(ownCheck)
		synctest.Wait()
		o.has(nine)
		want(false, true)
		machine.addrs.Store(nil)
		time.Sleep(2 * ownCheck)
		synctest.Wait()
		o.refresh()
		want(false, true)
	})
}
