package resolver

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// maxAliases is the longest chain of CNAMEs that is followed.
const maxAliases = 8

// state is the state of a track.
type state uint8

const (
	open  state = iota // to be asked; an answer ends this state
	found              // addrs are known
	none               // there are no addresses of this type
	gone               // the name does not exist, so it has no addresses of any type
)

// track is the chain of aliases from a name to its addresses of one type. It may need several
// answers.
type track struct {
	qtype   uint16
	name    string // the name to ask for next; canonical, with the final dot
	state   state
	aliases int           // followed so far
	ttl     time.Duration // the least TTL of the chain; in states none and gone, the SOA's
	addrs   []netip.Addr
	why     string // why there are none, if that is not obvious
}

func newTrack(name string, qtype uint16) track {
	return track{qtype: qtype, name: name + ".", ttl: math.MaxInt64}
}

// apply processes m, an answer to t's question. An error means that the answer is unusable, and
// leaves t unchanged.
func (t *track) apply(m *dns.Msg) error {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return fmt.Errorf("it answered %s", rcodeText(m.Rcode))
	}
	if referral(m) {
		return errors.New("it refers to other servers")
	}
	next := *t
	for {
		if next.takeAddresses(m.Answer) {
			break
		}
		if !next.takeAlias(m.Answer) {
			next.takeDenial(m, next.name != t.name)
			break
		}
		if next.aliases > maxAliases {
			next.deny(none, 0, "more than 8 aliases, or a loop of them")
			break
		}
	}
	*t = next
	return nil
}

// takeAddresses takes the addresses of the present name.
func (t *track) takeAddresses(answer []dns.RR) bool {
	for _, rr := range answer {
		if t.owns(rr) && rr.Header().Rrtype == t.qtype {
			if addr, ok := address(rr); ok {
				t.addrs = append(t.addrs, addr)
				t.lower(rr)
			}
		}
	}
	if len(t.addrs) == 0 {
		return false
	}
	t.state = found
	return true
}

// takeAlias follows the alias of the present name, if it has one.
func (t *track) takeAlias(answer []dns.RR) bool {
	for _, rr := range answer {
		if c, ok := rr.(*dns.CNAME); ok && t.owns(rr) {
			t.lower(rr)
			t.aliases++
			t.name = dns.CanonicalName(c.Target)
			return true
		}
	}
	return false
}

// takeDenial ends a track whose name has neither address nor alias in m. If an alias in m led to
// the name, and m does not say that there is no more, the name has to be asked for first.
func (t *track) takeDenial(m *dns.Msg, moved bool) {
	ttl, told := t.denial(m.Ns)
	switch {
	case m.Rcode == dns.RcodeNameError:
		t.deny(gone, ttl, "")
	case told || !moved:
		t.deny(none, ttl, "")
	case checkName(strings.TrimSuffix(t.name, ".")) != nil:
		t.deny(none, 0, fmt.Sprintf("alias of %.255q, which is no host name", t.name))
	}
}

func (t *track) deny(s state, ttl time.Duration, why string) {
	t.state, t.ttl, t.why = s, min(ttl, t.ttl), why
}

// denial returns the TTL of an absence, from the SOA record (RFC 2308, section 5).
func (t *track) denial(authority []dns.RR) (ttl time.Duration, ok bool) {
	for _, rr := range authority {
		if soa, ok := rr.(*dns.SOA); ok && dns.IsSubDomain(rr.Header().Name, t.name) {
			return min(seconds(rr.Header().Ttl), seconds(soa.Minttl)), true
		}
	}
	return 0, false
}

// owns reports whether rr belongs to the present name of t.
func (t *track) owns(rr dns.RR) bool {
	h := rr.Header()
	return h.Class == dns.ClassINET && strings.EqualFold(h.Name, t.name)
}

func (t *track) lower(rr dns.RR) { t.ttl = min(t.ttl, seconds(rr.Header().Ttl)) }

func address(rr dns.RR) (netip.Addr, bool) {
	var ip []byte
	switch rr := rr.(type) {
	case *dns.A:
		ip = rr.A
	case *dns.AAAA:
		ip = rr.AAAA
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

// seconds converts a TTL; with the top bit set it is zero (RFC 2181, section 8).
func seconds(ttl uint32) time.Duration {
	if ttl > math.MaxInt32 {
		return 0
	}
	return time.Duration(ttl) * time.Second
}

// referral reports whether m comes from a server that is neither a resolver nor authoritative for
// the name.
func referral(m *dns.Msg) bool {
	return m.Rcode == dns.RcodeSuccess && !m.Authoritative && !m.RecursionAvailable &&
		len(m.Answer) == 0 && len(m.Ns) > 0 && m.Ns[0].Header().Rrtype == dns.TypeNS
}

func rcodeText(rcode int) string {
	if text, ok := dns.RcodeToString[rcode]; ok {
		return text
	}
	return fmt.Sprintf("code %d", rcode)
}
