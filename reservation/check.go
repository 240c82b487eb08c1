package reservation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"urlserver/internal/weburl"
)

// Bounds of what callers ask for.
const (
	MinLease   = time.Millisecond // the stores' unit of time
	MaxLease   = 24 * time.Hour
	MaxTTL     = 30 * 24 * time.Hour
	MaxReserve = 1000    // hosts of one ReserveNextHost; more are cut to it
	MaxHosts   = 100_000 // of one alias
	MaxName    = 253     // bytes of a group's name, as of a DNS name
	maxHolder  = 255     // bytes
)

// latest bounds times: what is later counts as this, the last millisecond that RFC 3339 can say.
const latest int64 = 253402300799999

// Host returns a host name or IP literal in normal form, as the WHATWG URL standard does: lower case, Punycode, IPv6
// without brackets. The error wraps ErrInvalid.
func Host(raw string) (string, error) {
	if plainHost(raw) || plainIPv4(raw) {
		return raw, nil
	}
	if len(raw) > 4*MaxName {
		return "", fmt.Errorf("%w host %.100q: a host name or IP address is wanted, without port and path", ErrInvalid, raw)
	}
	host, err := weburl.Host(raw)
	if err != nil {
		return "", fmt.Errorf("%w %w", ErrInvalid, err)
	}
	return host, nil
}

// plainHost tells if raw is in normal form for sure: labels of small letters and digits, the last of letters.
func plainHost(raw string) bool {
	label, letters := 0, true
	for i := range len(raw) {
		switch c := raw[i]; {
		case 'a' <= c && c <= 'z':
			label++
		case '0' <= c && c <= '9':
			label, letters = label+1, false
		case c == '.' && label > 0:
			label, letters = 0, true
			continue
		default:
			return false
		}
		if label > 63 {
			return false
		}
	}
	return label > 0 && letters && len(raw) <= MaxName
}

// plainIPv4 tells if raw is an IPv4 address in normal form.
func plainIPv4(raw string) bool {
	if raw == "" || raw[0] > '9' {
		return false
	}
	addr, err := netip.ParseAddr(raw)
	return err == nil && addr.Is4()
}

// Alias checks an alias' name: a word of letters, digits, "_" and "-", not "localhost". Stores refuse the names of
// hosts that they know as well. The error wraps ErrInvalid.
func Alias(name string) error {
	if name == "" || len(name) > MaxName || strings.EqualFold(name, "localhost") || strings.ContainsFunc(name, notInAlias) {
		return fmt.Errorf("%w alias %.100q: a word of letters, digits, \"_\" and \"-\" is wanted that is no host's name", ErrInvalid, name)
	}
	return nil
}

func notInAlias(r rune) bool {
	return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && r != '_' && r != '-'
}

// AliasOf checks what SetAlias was given, and returns the hosts in normal form, sorted, none twice.
func AliasOf(alias string, hosts []string) ([]string, error) {
	list, err := JoinOf(alias, hosts)
	slices.Sort(list)
	return slices.Compact(list), err
}

// Joined checks the union of an alias' hosts, sorted, with hosts that join it, and returns it sorted, none
// twice.
func Joined(alias string, has, join []string) ([]string, error) {
	list := slices.Concat(has, join)
	slices.Sort(list)
	list = slices.Compact(list)
	return list, fits(alias, list)
}

func fits(alias string, hosts []string) error {
	if len(hosts) > MaxHosts {
		return fmt.Errorf("%w alias %s: %d hosts, more than %d", ErrInvalid, alias, len(hosts), MaxHosts)
	}
	return nil
}

// JoinOf checks what JoinAlias was given, and returns the hosts in normal form, in order.
func JoinOf(alias string, hosts []string) ([]string, error) {
	if err := Alias(alias); err != nil {
		return nil, err
	}
	if err := fits(alias, hosts); err != nil {
		return nil, err
	}
	list := make([]string, 0, len(hosts))
	for _, raw := range hosts {
		host, err := Host(raw)
		if err != nil {
			return nil, err
		}
		if host == alias {
			return nil, fmt.Errorf("%w alias %s: it is the name of one of its hosts", ErrInvalid, alias)
		}
		list = append(list, host)
	}
	return list, nil
}

// Lease checks a lease and returns it in ms. The error wraps ErrInvalid.
func Lease(lease time.Duration) (ms int64, err error) {
	if lease < MinLease || lease > MaxLease {
		return 0, fmt.Errorf("%w lease %v: from %v to %v is allowed", ErrInvalid, lease, MinLease, MaxLease)
	}
	return lease.Milliseconds(), nil
}

// TTL checks the time to live of a binding and returns it in ms. The error wraps ErrInvalid.
func TTL(ttl time.Duration) (ms int64, err error) {
	if ttl < MinLease || ttl > MaxTTL {
		return 0, fmt.Errorf("%w ttl %v: from %v to %v is allowed", ErrInvalid, ttl, MinLease, MaxTTL)
	}
	return ttl.Milliseconds(), nil
}

// Holder checks the name of who reserves, which is only shown. The error wraps ErrInvalid.
func Holder(name string) error {
	if len(name) > maxHolder || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%w holder %.100q: up to %d printable ASCII characters are allowed", ErrInvalid, name, maxHolder)
	}
	return nil
}

// Millis is t in ms since 1970, no earlier than t; 0 for the zero time and what is before 1970.
func Millis(t time.Time) int64 {
	if t.IsZero() || t.Unix() < 0 {
		return 0
	}
	return min(t.Add(time.Millisecond-1).UnixMilli(), latest)
}

// Moment is the time that a call names, in ms by the store's clock, which says now; no earlier than now.
func (c Call) Moment(now int64) int64 {
	if c.After > 0 {
		return min(now+c.AfterMillis(), latest)
	}
	return max(now, Millis(c.Time))
}

// AfterMillis is After in ms, rounded up.
func (c Call) AfterMillis() int64 { return min(int64((c.After-1)/time.Millisecond)+1, latest) }

// Time is the time of Millis; zero for 0.
func Time(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(min(ms, latest))
}

// Checked checks a call but for its token, and returns it with its host in normal form. The error wraps ErrInvalid.
func (c Call) Checked() (Call, error) {
	host, err := Host(c.Host)
	if err != nil {
		return c, err
	}
	c.Host = host
	if c.Verb == TryReserve || c.Verb == ExtendHost {
		if _, err := Lease(c.Lease); err != nil {
			return c, err
		}
	}
	if c.Verb == 0 || c.Verb > ReleaseHost {
		return c, fmt.Errorf("%w call: no verb has the number %d", ErrInvalid, c.Verb)
	}
	return c, Holder(c.Holder)
}

// CheckedBindings returns bindings with hosts in normal form and groups in normal form. The error wraps
// ErrInvalid.
func CheckedBindings(bindings []Binding) ([]Binding, error) {
	list := make([]Binding, len(bindings))
	for i, b := range bindings {
		host, err := Host(b.Host)
		if err != nil {
			return nil, err
		}
		group, err := Host(b.Group)
		if err != nil {
			return nil, fmt.Errorf("group of %s: %w", host, err)
		}
		list[i] = Binding{Host: host, Group: group}
	}
	return list, nil
}
