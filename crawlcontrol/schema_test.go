package crawlcontrol_test

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// schema is as much of JSON Schema as ours uses.
type schema struct {
	Type                 any
	Enum                 []string
	Required             []string
	Properties           map[string]schema
	AdditionalProperties *bool
	Items                *schema
	MinLength, MaxLength int
	MaxItems             int
	Minimum, Maximum     int64
}

// types are the words that Type has.
func (s *schema) types() (all []string) {
	switch v := s.Type.(type) {
	case string:
		return []string{v}
	case []any:
		for _, w := range v {
			all = append(all, w.(string))
		}
	}
	return all
}

func (s *schema) allows(v any) bool {
	is := func(word string) bool { return slices.Contains(s.types(), word) }
	switch v := v.(type) {
	case nil:
		return is("null")
	case string:
		n := utf8.RuneCountInString(v)
		return is("string") && (s.MaxLength == 0 || n >= s.MinLength && n <= s.MaxLength) &&
			(s.Enum == nil || slices.Contains(s.Enum, v))
	case json.Number:
		n, err := v.Int64()
		return is("integer") && err == nil && n >= s.Minimum && n <= s.Maximum
	case []any:
		return is("array") && len(v) <= s.MaxItems && !slices.ContainsFunc(v, func(e any) bool {
			return !s.Items.allows(e)
		})
	case map[string]any:
		return is("object") && s.allowsObject(v)
	}
	return false
}

func (s *schema) allowsObject(v map[string]any) bool {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	for name, one := range v {
		p, ok := s.Properties[name]
		if !ok && s.AdditionalProperties != nil && !*s.AdditionalProperties || ok && !p.allows(one) {
			return false
		}
	}
	return true
}
