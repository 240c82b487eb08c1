package docindex

import (
	"bytes"
	"cmp"
)

// A store knows a URL by spiderid, appid and crawl: a URL that one application has put is new for
// another application, and for another spider. The crawl is the queue's. spiderid and appid are the
// document's owner, which its metadata names.
//
// A store keeps each document under a name that is made of the queue, the owner and the URL, and
// keeps the owner of a document that is completed, though nothing else of its metadata.

// OwnerRoom is how much longer an owner may be than the metadata that names it.
const OwnerRoom = len(`,"spiderid":["` + DefaultSpider + `"]`)

// OwnerOf returns the owner in metadata that [EncodeMetadata] wrote: metadata with the first values
// of appid and spiderid alone. An appid without a spiderid has [DefaultSpider]. Nil: there is
// neither.
func OwnerOf(metadata []byte) []byte {
	if !bytes.Contains(metadata, []byte(`"spiderid"`)) && !bytes.Contains(metadata, []byte(`"appid"`)) {
		return nil
	}
	return namingOf(metadata).owner()
}

// OwnerOfCrawl returns the owner of a crawl's documents.
func OwnerOfCrawl(id CrawlID) []byte { return ownerText(id.Spider, id.App) }

// HasApp reports whether an owner names an appid.
func HasApp(owner []byte) bool { return bytes.HasPrefix(owner, []byte(`{"appid":`)) }

func ownerText(spider, app string) []byte {
	m := map[string][]string{}
	if app != "" {
		m["appid"] = []string{app}
		spider = cmp.Or(spider, DefaultSpider)
	}
	if spider != "" {
		m["spiderid"] = []string{spider}
	}
	return EncodeMetadata(m)
}

// WithOwner returns new metadata for a document with its owner, whatever owner the new metadata
// names. If both together are longer than [MaxExtra], it returns the owner alone.
func WithOwner(metadata, owner []byte) []byte {
	if bytes.Equal(OwnerOf(metadata), owner) {
		return metadata
	}
	m := DecodeMetadata(metadata)
	if m == nil {
		return owner
	}
	delete(m, "appid")
	delete(m, "spiderid")
	for key, list := range DecodeMetadata(owner) {
		m[key] = list
	}
	if all := EncodeMetadata(m); len(all) <= MaxExtra {
		return all
	}
	return owner
}

// UpdateRank ranks the documents that an update without an owner may mean: those of one URL in a
// queue. The update changes the one with the lowest rank. Clients that fetched a URL need not say
// whose it was. So first comes the document that a URL Frontier client has, then the one without an
// owner, then one that is not completed, then a completed one. If there is none, the update is of a
// new document without an owner.
func UpdateRank(state State, atCalls, owned bool) int {
	switch {
	case atCalls && state == InTransit:
		return 0
	case !owned:
		return 1
	case state != Completed:
		return 2
	}
	return 3
}

const NoRank = 4 // larger than any UpdateRank
