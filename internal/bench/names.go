package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const (
	zone    = ".bench.example"
	urlSize = 70 // bytes of a URL on a named host
)

// addrOf returns the n-th address of loopback, from 127.1.0.0 on.
func addrOf(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + n>>16), byte(n >> 8), byte(n)})
}

// numberOf is the reverse of addrOf; ok is false for other addresses.
func numberOf(a netip.Addr) (n int, ok bool) {
	if !a.Is4() {
		return 0, false
	}
	b := a.As4()
	return int(b[1]-1)<<16 | int(b[2])<<8 | int(b[3]), b[0] == 127 && b[1] > 0
}

// appendAddrURL appends the n-th URL. URLs go round the given number of hosts, which are IP
// addresses.
func appendAddrURL(to []byte, n, hosts int) []byte {
	to = append(to, "http://"...)
	return appendPath(addrOf(n%hosts).AppendTo(to), n)
}

// appendPath appends the path of the n-th URL.
func appendPath(to []byte, n int) []byte {
	to = append(to, "/some/path/of/usual/length/page-"...)
	return append(appendPadded(to, n, 7), ".html"...)
}

// hostName returns the name of the n-th host.
func hostName(n int) string { return fmt.Sprintf("h%07d%s", n, zone) }

// numberIn is the reverse of hostName.
func numberIn(name string) (n int, ok bool) {
	digits, isOurs := strings.CutSuffix(strings.ToLower(name), zone)
	if !isOurs || len(digits) != 8 || digits[0] != 'h' {
		return 0, false
	}
	n, err := strconv.Atoi(digits[1:])
	return n, err == nil && n >= 0
}

// appendNameURL appends the n-th URL, on the given host. It has urlSize bytes.
func appendNameURL(to []byte, n, host int) []byte {
	start := len(to)
	to = append(to, "http://h"...)
	to = appendPadded(to, host, 7)
	to = append(to, zone+"/some/path/of/usual/"...)
	return appendPadded(to, n, urlSize-(len(to)-start))
}

// appendPadded appends n with leading zeros, with the given number of digits.
func appendPadded(to []byte, n, digits int) []byte {
	var b [64]byte
	for i := range digits {
		b[digits-1-i] = byte('0' + n%10)
		n /= 10
	}
	return append(to, b[:digits]...)
}
