package protocol

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/netip"
)

// Errors of a line from the daemon.
var (
	ErrFetchFields = errors.New("fetch line is not of four fields with one space between")
	ErrFetchDocID  = errors.New("DOC_ID is not 1 to 64 printable ASCII characters")
	ErrFetchAddr   = errors.New("HOST_IP is not an IP address")
	ErrFetchURL    = errors.New("URL is empty, too long or not printable ASCII")
	ErrFetchTrans  = errors.New("TRANS_ID is empty or not printable ASCII")
	ErrFetchLoad   = errors.New("payload is neither - nor unpadded base64url of up to 8 KiB")
)

// Fetch is a line of the daemon: fetch URL from Addr. Its slices alias the line.
type Fetch struct {
	Trans []byte // opaque: the spider sends it back unchanged
	DocID []byte
	Addr  netip.Addr
	URL   []byte
}

// AppendFetch appends the line that tells a spider to fetch url from addr. The caller has checked
// docID with ValidDocID and url with ValidURL, and addr is valid. A zone is left out, and IPv4 in
// IPv6 form is written as IPv4. The line has at most MaxLine bytes.
func AppendFetch(dst []byte, t Trans, docID []byte, addr netip.Addr, url []byte) []byte {
	dst = AppendTrans(dst, t)
	dst = append(dst, ' ')
	dst = append(dst, docID...)
	dst = append(dst, ' ')
	dst = addr.Unmap().WithZone("").AppendTo(dst)
	dst = append(dst, ' ')
	dst = append(dst, url...)
	return append(dst, '\n')
}

// ParseFetch parses a line of the daemon, without its line end. It does not look into the TRANS_ID.
func ParseFetch(line []byte) (Fetch, error) {
	trans, rest, ok1 := cut(line, ' ')
	docID, rest, ok2 := cut(rest, ' ')
	addr, url, ok3 := cut(rest, ' ')
	if !ok1 || !ok2 || !ok3 || bytes.IndexByte(url, ' ') >= 0 {
		return Fetch{}, ErrFetchFields
	}
	if !isWord(trans) {
		return Fetch{}, ErrFetchTrans
	}
	if !ValidDocID(docID) {
		return Fetch{}, ErrFetchDocID
	}
	if !ValidURL(url) {
		return Fetch{}, ErrFetchURL
	}
	ip, ok := parseAddr(addr)
	if !ok {
		return Fetch{}, ErrFetchAddr
	}
	return Fetch{Trans: trans, DocID: docID, Addr: ip, URL: url}, nil
}

// AppendFetchWith is AppendFetch for a spider that has said PAYLOAD. An empty payload is none. The
// line has at most MaxLong bytes.
func AppendFetchWith(dst []byte, t Trans, docID []byte, addr netip.Addr, url, payload []byte) []byte {
	dst = AppendFetch(dst, t, docID, addr, url)
	dst[len(dst)-1] = ' '
	if len(payload) == 0 {
		dst = append(dst, '-')
	} else {
		dst = base64.RawURLEncoding.AppendEncode(dst, payload)
	}
	return append(dst, '\n')
}

// ParseFetchWith parses a line of the daemon to a spider that has said PAYLOAD, without its line
// end. A line of four fields was on its way before; it tells no payload. The payload is nil if
// there is none, and aliases nothing.
func ParseFetchWith(line []byte) (f Fetch, payload []byte, err error) {
	at := bytes.LastIndexByte(line, ' ')
	if bytes.Count(line, []byte(" ")) != 4 {
		f, err = ParseFetch(line)
		return f, nil, err
	}
	if f, err = ParseFetch(line[:at]); err != nil || string(line[at+1:]) == "-" {
		return f, nil, err
	}
	text := line[at+1:]
	payload, err = base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(payload) == 0 || len(payload) > MaxPayload || !isWord(text) {
		return Fetch{}, nil, ErrFetchLoad
	}
	return f, payload, nil
}

// parseAddr is netip.ParseAddr without zones. It allocates for IPv6 only.
func parseAddr(s []byte) (netip.Addr, bool) {
	if addr, ok := parseIPv4(s); ok {
		return addr, true
	}
	if len(s) > maxAddr {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(string(s))
	return addr, err == nil && addr.Zone() == ""
}

func parseIPv4(s []byte) (netip.Addr, bool) {
	var ip [4]byte
	for i := range ip {
		octet, rest, more := cut(s, '.')
		n, ok := parseUint32(octet)
		if !ok || n > 255 || more != (i < len(ip)-1) {
			return netip.Addr{}, false
		}
		ip[i], s = byte(n), rest
	}
	return netip.AddrFrom4(ip), true
}
