package docindex

import (
	"bytes"
	"cmp"
)

// naming is the first values of those metadata that name a crawl. They may alias the metadata.
type naming struct {
	spider, app, expires []byte
	plain                bool // JSON needs no escapes for them
}

// namingOf reads metadata that [EncodeMetadata] wrote. Anything else names nothing.
func namingOf(metadata []byte) naming {
	if n, ok := plainNaming(metadata); ok {
		return n
	}
	m := DecodeMetadata(metadata)
	return naming{spider: []byte(first(m["spiderid"])), app: []byte(first(m["appid"])),
		expires: []byte(first(m["expires"]))}
}

// plainNaming reads metadata in which no text needs an escape, without package json: most have that
// form, and they are read several times for each document. ok is false for all others.
func plainNaming(metadata []byte) (n naming, ok bool) {
	rest, ok := bytes.CutPrefix(metadata, []byte("{"))
	for more := ok; more; {
		var key, value []byte
		if key, value, rest, ok = plainMember(rest); !ok {
			return n, false
		}
		switch string(key) {
		case "spiderid":
			n.spider = value
		case "appid":
			n.app = value
		case "expires":
			n.expires = value
		}
		rest, more = bytes.CutPrefix(rest, []byte(","))
	}
	n.plain = string(rest) == "}"
	return n, n.plain
}

// isCompact reports whether metadata have the form that [EncodeMetadata] writes, and need no
// escapes. It is false for some that have that form, too.
func isCompact(metadata []byte) bool {
	var last []byte
	rest, ok := bytes.CutPrefix(metadata, []byte("{"))
	for more, first := ok, true; more; first = false {
		var key []byte
		if key, _, rest, ok = plainMember(rest); !ok || !first && bytes.Compare(key, last) <= 0 {
			return false
		}
		last = key
		rest, more = bytes.CutPrefix(rest, []byte(","))
	}
	return string(rest) == "}" && len(metadata) > len("{}")
}

// plainMember reads the name and the first value of a member.
func plainMember(members []byte) (key, value, rest []byte, ok bool) {
	if key, rest, ok = plainText(members); !ok {
		return nil, nil, nil, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(":[")); !ok {
		return nil, nil, nil, false
	}
	value, rest, ok = plainList(rest)
	return key, value, rest, ok
}

// plainList reads texts up to the end of their list, and returns the first one.
func plainList(list []byte) (value, rest []byte, ok bool) {
	if rest, ok = bytes.CutPrefix(list, []byte("]")); ok {
		return nil, rest, true
	}
	value, rest, ok = plainText(list)
	for ok && len(rest) > 0 && rest[0] == ',' {
		_, rest, ok = plainText(rest[1:])
	}
	if !ok {
		return nil, nil, false
	}
	rest, ok = bytes.CutPrefix(rest, []byte("]"))
	return value, rest, ok
}

// plainText reads a text in quotes that has no escapes and needs none.
func plainText(quoted []byte) (text, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(quoted, []byte(`"`))
	if !ok {
		return nil, nil, false
	}
	for i, c := range rest {
		switch {
		case c == '"':
			return rest[:i:i], rest[i+1:], true
		case c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// owner returns the owner: see [OwnerOf]. It does not alias the metadata.
func (n naming) owner() []byte {
	switch {
	case !n.plain:
		return ownerText(string(n.spider), string(n.app))
	case len(n.app) == 0 && len(n.spider) == 0:
		return nil
	case len(n.app) == 0:
		return bytes.Join([][]byte{[]byte(`{"spiderid":["`), n.spider, []byte(`"]}`)}, nil)
	}
	spider := n.spider
	if len(spider) == 0 {
		spider = []byte(DefaultSpider)
	}
	return bytes.Join([][]byte{[]byte(`{"appid":["`), n.app, []byte(`"],"spiderid":["`), spider, []byte(`"]}`)}, nil)
}

// spiderOf returns the spider that fetches the document; "": any may.
func (n naming) spiderOf() string {
	if len(n.app) == 0 {
		return string(n.spider)
	}
	return cmp.Or(string(n.spider), DefaultSpider)
}
