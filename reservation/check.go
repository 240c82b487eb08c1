package reservation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"urlserver/internal/weburl"
)

// Limits of arguments.
const (
	MinLease   = time.Millisecond // the stores' unit of time
	MaxLease   = 24 * time.Hour
	MaxTTL     = 30 * 24 * time.Hour
	MaxReserve = 1000    // hosts of one ReserveNextHost; the store reduces a greater number to this
	MaxHosts   = 100_000 // hosts of one alias
	MaxName    = 253     // bytes of a group's name, the limit of a DNS name
	maxHolder  = 255     // bytes
)

// latest is the last millisecond that RFC 3339 can express, in ms since 1970. The stores reduce
// later times to it.
const latest int64 = 253402300799999

// Host returns a host name or IP literal in the normal form of the WHATWG URL standard: lower case,
// Punycode, IPv6 without brackets. An error wraps ErrInvalid.
func Host(raw string) (string, error) {
	if plainHost(raw) || plainIPv4(raw) {
		return raw, nil
	}
	if len(raw) > 4*MaxName {
		return "", fmt.Errorf("%w host %.100q: a host name or IP address is wanted, without port and path",
			ErrInvalid, raw)
	}
	host, err := weburl.Host(raw)
	if err != nil {
		return "", fmt.Errorf("%w %w", ErrInvalid, err)
	}
	return host, nil
}

// plainHost reports whether raw is certainly in normal form: labels of lower-case letters and
// digits, the last label of letters only.
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

// plainIPv4 reports whether raw is an IPv4 address in normal form.
func plainIPv4(raw string) bool {
	if raw == "" || raw[0] > '9' {
		return false
	}
	addr, err := netip.ParseAddr(raw)
	return err == nil && addr.Is4()
}

// CheckAliasName checks the name of an alias: letters, digits, "_" and "-", and not "localhost".
// Stores also refuse the name of a host that they know. An error wraps ErrInvalid.
func CheckAliasName(name string) error {
	if name == "" || len(name) > MaxName || strings.EqualFold(name, "localhost") ||
		strings.ContainsFunc(name, notInAlias) {
		return fmt.Errorf(
			"%w alias %.100q: a word of letters, digits, \"_\" and \"-\" is wanted that is no host's name",
			ErrInvalid, name)
	}
	return nil
}

func notInAlias(r rune) bool {
	return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && r != '_' && r != '-'
}

// CheckAlias checks the arguments of SetAlias. It returns the hosts in normal form, sorted and
// without duplicates.
func CheckAlias(alias string, hosts []string) ([]string, error) {
	list, err := CheckJoin(alias, hosts)
	slices.Sort(list)
	return slices.Compact(list), err
}

// CheckUnion merges the sorted hosts of an alias with the hosts that join it, and checks the
// number. It returns the hosts sorted and without duplicates.
func CheckUnion(alias string, has, join []string) ([]string, error) {
	list := slices.Concat(has, join)
	slices.Sort(list)
	list = slices.Compact(list)
	return list, checkSize(alias, list)
}

func checkSize(alias string, hosts []string) error {
	if len(hosts) > MaxHosts {
		return fmt.Errorf("%w alias %s: %d hosts, more than %d", ErrInvalid, alias, len(hosts), MaxHosts)
	}
	return nil
}

// CheckJoin checks the arguments of JoinAlias. It returns the hosts in normal form, in the given
// order.
func CheckJoin(alias string, hosts []string) ([]string, error) {
	if err := CheckAliasName(alias); err != nil {
		return nil, err
	}
	if err := checkSize(alias, hosts); err != nil {
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

// LeaseMillis checks a lease and returns it in ms. An error wraps ErrInvalid.
func LeaseMillis(lease time.Duration) (ms int64, err error) {
	if lease < MinLease || lease > MaxLease {
		return 0, fmt.Errorf("%w lease %v: from %v to %v is allowed", ErrInvalid, lease, MinLease, MaxLease)
	}
	return lease.Milliseconds(), nil
}

// TTLMillis checks the time to live of a binding and returns it in ms. An error wraps ErrInvalid.
func TTLMillis(ttl time.Duration) (ms int64, err error) {
	if ttl < MinLease || ttl > MaxTTL {
		return 0, fmt.Errorf("%w ttl %v: from %v to %v is allowed", ErrInvalid, ttl, MinLease, MaxTTL)
	}
	return ttl.Milliseconds(), nil
}

// CheckHolder checks the name of a holder. The stores only show it. An error wraps ErrInvalid.
func CheckHolder(name string) error {
	if len(name) > maxHolder || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%w holder %.100q: up to %d printable ASCII characters are allowed",
			ErrInvalid, name, maxHolder)
	}
	return nil
}

// Millis returns t in ms since 1970, rounded up. It is 0 for the zero time and for times before
// 1970.
func Millis(t time.Time) int64 {
	if t.IsZero() || t.Unix() < 0 {
		return 0
	}
	return min(t.Add(time.Millisecond-1).UnixMilli(), latest)
}

// Moment returns the time that a call names, in ms since 1970 by the store's clock. now is that
// clock's time. The result is not before now.
func (c Call) Moment(now int64) int64 {
	if c.After > 0 {
		return min(now+c.AfterMillis(), latest)
	}
	return max(now, Millis(c.Time))
}

// AfterMillis returns After in ms, rounded up.
func (c Call) AfterMillis() int64 { return min(int64((c.After-1)/time.Millisecond)+1, latest) }

// Time is the inverse of Millis. It returns the zero time for 0.
func Time(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(min(ms, latest))
}

// Checked checks all of a call except its token, and returns the call with its host in normal form.
// An error wraps ErrInvalid.
func (c Call) Checked() (Call, error) {
	host, err := Host(c.Host)
	if err != nil {
		return c, err
	}
	c.Host = host
	if c.Verb == TryReserve || c.Verb == ExtendHost {
		if _, err := LeaseMillis(c.Lease); err != nil {
			return c, err
		}
	}
	if c.Verb == 0 || c.Verb > ReleaseHost {
		return c, fmt.Errorf("%w call: no verb has the number %d", ErrInvalid, c.Verb)
	}
	return c, CheckHolder(c.Holder)
}

// CheckedBindings returns the bindings with hosts and groups in normal form. An error wraps
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
