package crawlcontrol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxMessage is the most bytes of a request: the longest URL and the longest metadata of a
// document, with every byte escaped.
const MaxMessage = 128 << 10

// fields are the raw values of a JSON object.
type fields map[string]json.RawMessage

// readFields reads a message that must be one JSON object and nothing else.
func readFields(message []byte) (fields, error) {
	switch {
	case len(message) > MaxMessage:
		return nil, fmt.Errorf("message of %d bytes: at most %d are read", len(message), MaxMessage)
	case !utf8.Valid(message):
		return nil, errors.New("message is not UTF-8")
	case !json.Valid(message): // checks the whole message, so nothing follows the object
		return nil, errors.New("message is not a JSON object, or something follows it")
	}
	in := json.NewDecoder(bytes.NewReader(message))
	if start, _ := in.Token(); start != json.Delim('{') {
		return nil, errors.New("message is not a JSON object")
	}
	all := fields{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, fmt.Errorf("message: %w", err)
		}
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return nil, fmt.Errorf("message: %w", err)
		}
		key := name.(string) // a token of an object that is not a value is a key
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("message has %.40q twice", key)
		}
		all[key] = raw
	}
	return all, nil
}

// peek returns a field's text if it is valid, else "".
func (all fields) peek(s *requestSchema, name string) string {
	for i := range s.fields {
		if f := &s.fields[i]; f.name == name && all[name] != nil {
			if v, err := f.read(all[name]); err == nil {
				return v.text
			}
		}
	}
	return ""
}

// value is the value of a field. The field's kind says which member counts.
type value struct {
	text   string // of an object: its compact JSON
	number int64
	list   []string
	given  bool
}

// values are a request's values by name. A missing field has its preset or the zero value.
type values map[string]value

// read checks the fields against the schema and returns their values.
func (s *requestSchema) read(all fields) (values, error) {
	out := values{}
	for i := range s.fields {
		f := &s.fields[i]
		raw := all[f.name]
		if raw == nil || string(raw) == "null" && !f.required {
			if f.required {
				return nil, fmt.Errorf("%s: %s is missing", s.name, f.name)
			}
			out[f.name] = f.missing()
			continue
		}
		v, err := f.read(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.name, f.name, err)
		}
		out[f.name] = v
	}
	for name := range all {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("%s: there is no field %.40q; there are %s", s.name, name, s.names())
		}
	}
	return out, nil
}

func (s *requestSchema) names() string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func (f *field) missing() (v value) {
	switch p := f.preset.(type) {
	case string:
		v.text = p
	case int:
		v.number = int64(p)
	}
	return v
}

func (f *field) read(raw json.RawMessage) (v value, err error) {
	v.given = true
	switch f.kind {
	case text:
		err = f.readText(raw, &v)
	case integer:
		err = f.readInteger(raw, &v)
	case list:
		err = f.readList(raw, &v)
	case object:
		err = readObject(raw, &v)
	}
	return v, err
}

func (f *field) readText(raw json.RawMessage, v *value) error {
	if raw[0] != '"' || json.Unmarshal(raw, &v.text) != nil {
		return errors.New("is not a string")
	}
	if n := int64(utf8.RuneCountInString(v.text)); n < f.least || n > f.most {
		return fmt.Errorf("has %d characters; %d to %d are allowed", n, f.least, f.most)
	}
	for _, word := range f.words {
		if v.text == word {
			return nil
		}
	}
	if f.words != nil {
		return fmt.Errorf("%.40q is not allowed; use %s", v.text, strings.Join(f.words, ", "))
	}
	return nil
}

func (f *field) readInteger(raw json.RawMessage, v *value) (err error) {
	v.number, err = strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return fmt.Errorf("%.40s is not a whole number", raw)
	case err != nil || v.number < f.least || v.number > f.most:
		return fmt.Errorf("%.40s is out of range; %d to %d are allowed", raw, f.least, f.most)
	}
	return nil
}

func (f *field) readList(raw json.RawMessage, v *value) error {
	var all []*string // pointers, to tell null from ""
	if raw[0] != '[' || json.Unmarshal(raw, &all) != nil {
		return errors.New("is not a list of strings")
	}
	if int64(len(all)) > f.most {
		return fmt.Errorf("has %d elements; at most %d are allowed", len(all), f.most)
	}
	v.list = []string{}
	for _, s := range all {
		if s == nil {
			return errors.New("is not a list of strings")
		}
		v.list = append(v.list, *s)
	}
	return nil
}

func readObject(raw json.RawMessage, v *value) error {
	var b bytes.Buffer
	if raw[0] != '{' || json.Compact(&b, raw) != nil {
		return errors.New("is not an object")
	}
	v.text = b.String()
	return nil
}
