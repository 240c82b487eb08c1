package configs

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func text(allowed string, fault func(string) string) kind[string] {
	return kind[string]{allowed: allowed, read: as[string], fault: fault, text: tomlString}
}

// optional is text that may be empty as well.
func optional(allowed string, fault func(string) string) kind[string] {
	return text(`"" or `+allowed, func(s string) string {
		if s == "" {
			return ""
		}
		return fault(s)
	})
}

func oneOf(words ...string) kind[string] {
	return text(strings.Join(words, ", "), func(s string) string {
		if slices.Contains(words, s) {
			return ""
		}
		return quoted(s) + " is none of these"
	})
}

func secret() kind[Secret] {
	return kind[Secret]{
		allowed: "\"\" or up to 1024 printable ASCII characters without space",
		read: func(v any) (Secret, error) {
			s, err := as[string](v)
			return Secret(s), err
		},
		fault:  func(s Secret) string { return tokenFault(string(s)) },
		text:   func(s Secret) string { return tomlString(string(s)) },
		secret: true,
	}
}

// list is a list of what elem accepts; a fault names the element.
func list(allowed string, fault func(string) string) kind[[]string] {
	return kind[[]string]{
		allowed: "a list of " + allowed,
		read:    readStrings,
		fault: func(all []string) string {
			for _, s := range all {
				if f := fault(s); f != "" {
					return f
				}
			}
			return ""
		},
		text: tomlStrings,
	}
}

func readStrings(v any) ([]string, error) {
	elems, err := as[[]any](v)
	if err != nil {
		return nil, err
	}
	var all []string // nil if empty, as in Default
	for i, e := range elems {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("element %d is %s", i+1, typeName(e))
		}
		all = append(all, s)
	}
	return all, nil
}

func networks() kind[[]netip.Prefix] {
	return kind[[]netip.Prefix]{
		allowed: "a list of networks, as in \"10.0.0.0/8\" or \"fd00::/8\"",
		read: func(v any) ([]netip.Prefix, error) {
			all, err := readStrings(v)
			if err != nil {
				return nil, err
			}
			var nets []netip.Prefix
			for _, s := range all {
				n, err := netip.ParsePrefix(s)
				if err != nil {
					return nil, fmt.Errorf("%s is not a network", quoted(s))
				}
				nets = append(nets, n)
			}
			return nets, nil
		},
		fault: networksFault,
		text: func(nets []netip.Prefix) string {
			all := make([]string, len(nets))
			for i, n := range nets {
				all[i] = n.String()
			}
			return tomlStrings(all)
		},
	}
}

func ports() kind[[]int] {
	one := integer(0, 65535)
	return kind[[]int]{
		allowed: "a list of whole numbers from 0 to 65535",
		read: func(v any) ([]int, error) {
			elems, err := as[[]any](v)
			if err != nil {
				return nil, err
			}
			var all []int // nil if empty, as in Default
			for i, e := range elems {
				n, err := one.read(e)
				if err != nil {
					return nil, fmt.Errorf("element %d %w", i+1, err)
				}
				all = append(all, n)
			}
			return all, nil
		},
		fault: func(all []int) string {
			for _, n := range all {
				if f := one.fault(n); f != "" {
					return f
				}
			}
			return ""
		},
		text: func(all []int) string {
			var b strings.Builder
			for i, n := range all {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString(strconv.Itoa(n))
			}
			return "[" + b.String() + "]"
		},
	}
}

// tomlString is s as a TOML basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func tomlStrings(all []string) string {
	literals := make([]string, len(all))
	for i, s := range all {
		literals[i] = tomlString(s)
	}
	return "[" + strings.Join(literals, ", ") + "]"
}
