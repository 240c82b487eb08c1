package configs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// kind is what one sort of setting accepts. Its functions are pure.
type kind[T any] struct {
	allowed string                 // in words
	read    func(v any) (T, error) // from what TOML gave; nothing about ranges
	fault   func(v T) string       // what is wrong with a value; "": nothing
	text    func(v T) string       // as TOML; equal texts are equal values
	secret  bool                   // never shown
}

// wrongType is the error of a read function that got something else.
func wrongType(v any) error {
	return fmt.Errorf("is %s", typeName(v))
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case time.Time:
		return "a date or time"
	case []any, []map[string]any:
		return "a list"
	default:
		return "a table"
	}
}

func as[T any](v any) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, wrongType(v)
	}
	return t, nil
}

func noFault[T any](T) string { return "" }

// outside says how v misses the range, "" if it does not.
func outside[T int | float64 | time.Duration](v, least, most T, text func(T) string) string {
	switch {
	case v < least:
		return text(v) + " is too small"
	case v > most:
		return text(v) + " is too large"
	}
	return ""
}

func integer(least, most int) kind[int] {
	return kind[int]{
		allowed: fmt.Sprintf("a whole number from %d to %d", least, most),
		read:    readInt,
		fault:   func(v int) string { return outside(v, least, most, strconv.Itoa) },
		text:    strconv.Itoa,
	}
}

// size is a number of bytes written as a string with a unit.
func size(least, most int) kind[int] {
	return kind[int]{
		allowed: fmt.Sprintf("a size from %s to %s, as in \"64MiB\" or \"2GiB\"", sizeText(least),
			sizeText(most)),
		read: func(v any) (int, error) {
			s, err := as[string](v)
			if err != nil {
				return 0, err
			}
			return readSize(s)
		},
		fault: func(v int) string { return outside(v, least, most, sizeText) },
		text:  func(v int) string { return tomlString(sizeText(v)) },
	}
}

// sizeUnits are the units of sizes, the largest first.
var sizeUnits = []struct {
	name  string
	bytes int
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func readSize(s string) (int, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(digits, " "))
		if err != nil || strings.ContainsAny(digits, "+-") {
			break
		}
		if n > math.MaxInt/unit.bytes {
			return 0, fmt.Errorf("%s is too large", quoted(s))
		}
		return n * unit.bytes, nil
	}
	return 0, fmt.Errorf("%s is not a size", quoted(s))
}

// sizeText writes bytes in the largest unit of which they are a whole number.
func sizeText(n int) string {
	for _, unit := range sizeUnits {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.Itoa(n/unit.bytes) + unit.name
		}
	}
	return "0B"
}

func readInt(v any) (int, error) {
	i, err := as[int64](v)
	if err == nil && int64(int(i)) != i {
		return 0, fmt.Errorf("%d is too large", i)
	}
	return int(i), err
}

// number is a float that may be written as a whole number.
func number(least, most float64) kind[float64] {
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return kind[float64]{
		allowed: fmt.Sprintf("a number from %s to %s",
			strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64)),
		read: func(v any) (float64, error) {
			if i, ok := v.(int64); ok {
				return float64(i), nil
			}
			return as[float64](v)
		},
		fault: func(v float64) string {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return text(v) + " is not a finite number"
			}
			return outside(v, least, most, text)
		},
		text: text,
	}
}

// orZero is a number that may be 0, too.
func orZero(k kind[float64]) kind[float64] {
	return kind[float64]{
		allowed: "0 or " + k.allowed,
		read:    k.read,
		fault: func(v float64) string {
			if v == 0 {
				return ""
			}
			return k.fault(v)
		},
		text: k.text,
	}
}

func boolean() kind[bool] {
	return kind[bool]{allowed: "true or false", read: as[bool], fault: noFault[bool],
		text: strconv.FormatBool}
}

// seconds is a duration written as a whole number of seconds.
func seconds(least, most int) kind[time.Duration] {
	whole := integer(least, most)
	return kind[time.Duration]{
		allowed: whole.allowed + " (seconds)",
		read: func(v any) (time.Duration, error) {
			n, err := readInt(v)
			if err == nil && whole.fault(n) != "" {
				return 0, fmt.Errorf("%s", whole.fault(n)) // before it can overflow
			}
			return time.Duration(n) * time.Second, err
		},
		fault: func(v time.Duration) string {
			if v%time.Second != 0 {
				return v.String() + " is not a whole number of seconds"
			}
			return whole.fault(int(v / time.Second))
		},
		text: func(v time.Duration) string { return strconv.Itoa(int(v / time.Second)) },
	}
}

// span is a duration written as a string with units.
func span(least, most time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		allowed: fmt.Sprintf("a duration from %s to %s, as in \"90s\" or \"1h30m\"", short(least),
			short(most)),
		read: func(v any) (time.Duration, error) {
			s, err := as[string](v)
			if err != nil {
				return 0, err
			}
			d, err := time.ParseDuration(s)
			if err != nil {
				return 0, fmt.Errorf("%s is not a duration", quoted(s))
			}
			return d, nil
		},
		fault: func(v time.Duration) string { return outside(v, least, most, short) },
		text:  func(v time.Duration) string { return tomlString(short(v)) },
	}
}

// never is the word for no duration at all.
const never = "never"

// orNever is a span that may be the word, too; then it is 0. least is above 0.
func orNever(least, most time.Duration) kind[time.Duration] {
	spans := span(least, most)
	return kind[time.Duration]{
		allowed: `"` + never + `" or ` + spans.allowed,
		read: func(v any) (time.Duration, error) {
			if v == never {
				return 0, nil
			}
			d, err := spans.read(v)
			if err == nil && d == 0 {
				err = errors.New(spans.fault(0))
			}
			return d, err
		},
		fault: func(v time.Duration) string {
			if v == 0 {
				return ""
			}
			return spans.fault(v)
		},
		text: func(v time.Duration) string {
			if v == 0 {
				return tomlString(never)
			}
			return spans.text(v)
		},
	}
}

// short is d.String without the zero units at its end: "1h", not "1h0m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
