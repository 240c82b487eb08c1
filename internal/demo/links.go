package demo

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// links returns the URLs that an answer leads to: the target of a redirect, or the references of an
// HTML page as refsOf returns them.
func links(base *url.Url, a answer) (urls []string) {
	add := func(base *url.Url, ref string) {
		if u, err := base.Parse(ref); err == nil {
			urls = append(urls, u.Href(true))
		}
	}
	if a.location != "" {
		add(base, a.location)
	}
	media, _, _ := mime.ParseMediaType(a.kind)
	isPage := media == "text/html" || media == "application/xhtml+xml"
	if !isPage || a.status != http.StatusOK || strings.Contains(a.robotsTag, "nofollow") {
		return urls
	}
	refs, baseRef, nofollow := refsOf(a)
	if nofollow {
		return urls
	}
	if b, err := base.Parse(baseRef); err == nil {
		base = b
	}
	for _, ref := range refs {
		add(base, ref)
	}
	return urls
}

// refsOf returns the references of a page by a, area, iframe and frame, by link with rel canonical,
// next or prev, and by meta refresh, except those with rel=nofollow. base is the page's first base.
// nofollow reports whether a meta tag forbids to follow links.
func refsOf(a answer) (refs []string, base string, nofollow bool) {
	text, err := charset.NewReader(bytes.NewReader(a.body), a.kind)
	if err != nil {
		return nil, "", false
	}
	z := html.NewTokenizer(text)
	for z.Next() != html.ErrorToken {
		t := z.Token()
		if t.Type != html.StartTagToken && t.Type != html.SelfClosingTagToken {
			continue
		}
		ref := ""
		rel := strings.Fields(strings.ToLower(attr(t, "rel")))
		switch t.Data {
		case "a", "area":
			ref = attr(t, "href")
		case "link":
			if has(rel, "canonical", "next", "prev") {
				ref = attr(t, "href")
			}
		case "iframe", "frame":
			ref, rel = attr(t, "src"), nil
		case "base":
			if base == "" {
				base = strings.TrimSpace(attr(t, "href"))
			}
		case "meta":
			ref = refresh(t)
			nofollow = nofollow || forbidsLinks(t)
		}
		if ref = strings.TrimSpace(ref); ref != "" && ref[0] != '#' && !has(rel, "nofollow") {
			refs = append(refs, ref)
		}
	}
	return refs, base, nofollow
}

// refresh returns the URL of a meta refresh, as in content="0; url=next.html".
func refresh(t html.Token) string {
	if !strings.EqualFold(attr(t, "http-equiv"), "refresh") {
		return ""
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(attr(t, "content"), ",", ";"), ";")
	key, ref, _ := strings.Cut(rest, "=")
	if !strings.EqualFold(strings.TrimSpace(key), "url") {
		return ""
	}
	return strings.Trim(strings.TrimSpace(ref), `'"`)
}

func forbidsLinks(t html.Token) bool {
	name, content := strings.ToLower(attr(t, "name")), strings.ToLower(attr(t, "content"))
	words := strings.FieldsFunc(content, func(r rune) bool { return r == ',' || r == ' ' })
	return (name == "robots" || name == agent) && has(words, "nofollow", "none")
}

// attr returns the first attribute of that name.
func attr(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// has reports whether one of the wanted words is in words.
func has(words []string, wanted ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(wanted, w) })
}
