package redis

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// hashBytes is the length of the hash that names a document in its queue. If two URLs of a queue
// have the same hash, the store refuses the second.
const hashBytes = 12

// hashOf returns the hash of a URL without an owner.
func hashOf(url []byte) string {
	sum := sha256.Sum256(url)
	return string(sum[:hashBytes])
}

// hashFor returns the hash of a URL of an owner.
func hashFor(owner string, url []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s", owner, url)
	return string(sum.Sum(nil)[:hashBytes])
}

// ownerOf returns the owner that metadata names, as scripts take it, or "".
func ownerOf(metadata []byte) string {
	m := docindex.DecodeMetadata(docindex.OwnerOf(metadata))
	if len(m) == 0 {
		return ""
	}
	spider, app := m["spiderid"][0], ""
	if list := m["appid"]; len(list) > 0 {
		app = list[0]
	}
	return whoOf(spider, app)
}

// uniqueOf returns the identity of a document that is known by a unique, as scripts take it.
func uniqueOf(owner string, unique []byte) string { return owner + "\x01" + string(unique) }

// identityOf returns what scripts know the document of a Put by beside its URL: its owner, and its
// unique if it has one.
func identityOf(p *docindex.Put) string {
	owner := ownerOf(p.Metadata)
	if len(p.Unique) == 0 {
		return owner
	}
	return uniqueOf(owner, p.Unique)
}

// uniqueKey returns the field in a shard's ids by which the document of a Put with a unique is found.
// It begins with a byte that no DOC_ID has.
func uniqueKey(p *docindex.Put) string {
	sum := sha1.Sum([]byte(nameOf(string(p.Crawl), identityOf(p))))
	return "\x01" + hex.EncodeToString(sum[:])
}

// hashesOfPut is hashesOf for the document of a Put.
func hashesOfPut(p *docindex.Put) (hash, other string) {
	if len(p.Unique) > 0 {
		hash = hashFor(identityOf(p), nil)
		return hash, hash
	}
	return hashesOf(ownerOf(p.Metadata), p.URL)
}

// hashesOf returns the hash that a new document of an owner gets, and the other hash that a known
// one may have. In version 1 all documents had the hash of their URL alone. If such a document has
// an owner, a document of the URL without an owner gets the other hash.
func hashesOf(owner string, url []byte) (hash, other string) {
	if owner == "" {
		return hashOf(url), hashFor("", url)
	}
	return hashFor(owner, url), hashOf(url)
}

// where is the place of a document: its shard, its queue (the number, or "@" and the name), and its
// hash.
type where struct {
	shard int
	queue string
	hash  string
}

func (w where) known() bool { return w.queue != "" }

// nameOf returns the name of a queue in its shard, as the scripts make it.
func nameOf(crawl, key string) string { return strconv.Itoa(len(crawl)) + ":" + crawl + key }

func whereOf(crawl, key, hash string) where {
	return where{shardOf(key), "@" + nameOf(crawl, key), hash}
}

// encode returns w as shards keep it for a DOC_ID that a client gave.
func (w where) encode() string { return strconv.Itoa(w.shard) + " " + w.hash + w.queue }

// decode is the reverse of encode. The shard may be followed by a point and a number, which changes
// each time the DOC_ID is given again.
func decode(text string) (w where) {
	shard, rest, _ := strings.Cut(text, " ")
	shard, _, _ = strings.Cut(shard, ".")
	n, err := strconv.Atoi(shard)
	if err != nil || n < 0 || n >= shards || len(rest) <= hashBytes {
		return where{}
	}
	return where{n, rest[hashBytes:], rest[:hashBytes]}
}

// ownID returns the DOC_ID of a document that was put without one.
func (s *Store) ownID(shard int, queue, hash string) string {
	return fmt.Sprintf("%s.%d.%s.%s", s.tag, shard, queue, base64.RawURLEncoding.EncodeToString([]byte(hash)))
}

// parseOwn is the reverse of ownID. own: this Redis has given the DOC_ID.
func (s *Store) parseOwn(id string) (w where, own bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != s.tag {
		return where{}, false
	}
	shard, err := strconv.Atoi(parts[1])
	hash, err2 := base64.RawURLEncoding.DecodeString(parts[3])
	if _, err3 := strconv.ParseUint(parts[2], 10, 52); err != nil || err2 != nil || err3 != nil ||
		shard < 0 || shard >= shards || len(hash) != hashBytes {
		return where{}, true
	}
	if w = (where{shard, parts[2], string(hash)}); s.ownID(w.shard, w.queue, w.hash) != id {
		return where{}, true
	}
	return w, true
}

// find returns the places of documents. The place of an unknown document is the zero value.
func (s *Store) find(ctx context.Context, ids []string) ([]where, error) {
	if _, err := s.connected(ctx); err != nil { // parseOwn needs the tag that it reads
		return nil, err
	}
	all := make([]where, len(ids))
	var asked [shards][]string
	var at [shards][]int
	for i, id := range ids {
		w, own := s.parseOwn(id)
		if all[i] = w; !own {
			j := shardOf(id)
			asked[j], at[j] = append(asked[j], id), append(at[j], i)
		}
	}
	answers, err := s.unbroken(ctx, opsOf(whereScript, asked[:], nil))
	for _, a := range answers {
		for i, m := range list(a.value) {
			all[at[a.shard][i]] = decode(text(m))
		}
	}
	return all, err
}

// opsOf returns the calls of a script on the shards that have arguments. first returns further
// arguments, which go before these.
func opsOf(script *script, args [][]string, first func(shard int) []string) (ops []op) {
	for shard, list := range args {
		if len(list) == 0 {
			continue
		}
		if first != nil {
			list = append(first(shard), list...)
		}
		ops = append(ops, op{shard, script, list})
	}
	return ops
}

// lookUp returns where the documents with these IDs are, and the documents, as find and get do.
func (s *Store) lookUp(ctx context.Context, ids []string) ([]where, []docindex.Document, error) {
	has, err := s.find(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	docs, err := s.get(ctx, has)
	return has, docs, err
}

// get reads documents. A document that does not exist has no URL.
func (s *Store) get(ctx context.Context, places []where) ([]docindex.Document, error) {
	docs := make([]docindex.Document, len(places))
	var ops []op
	var at []int
	for i, w := range places {
		if w.known() {
			ops, at = append(ops, op{w.shard, getScript, []string{w.queue, w.hash}}), append(at, i)
		}
	}
	answers, err := s.all(ctx, ops)
	for i, a := range answers {
		if parts := list(a.value); len(parts) == documentParts {
			docs[at[i]] = s.documentOf(a.shard, parts)
		}
	}
	return docs, err
}

const documentParts = 15 // values of a document in a script's answer

func (s *Store) documentOf(shard int, m []rueidis.RedisMessage) docindex.Document {
	d := docindex.Document{State: docindex.State(number(m[0]) - 1),
		Created: time.Unix(number(m[3]), 0).UTC(), Put: docindex.Put{
			Due: number(m[1]), Priority: int32(number(m[2])), URL: []byte(text(m[4])), DocID: []byte(text(m[5])),
			Crawl: []byte(text(m[7])), Key: []byte(text(m[8])),
		}}
	docindex.Packed(text(m[6])).Unpack(&d.Put)
	d.Last = lastOf(number(m[12]), number(m[13]), number(m[14]))
	if len(d.DocID) == 0 {
		d.DocID = []byte(s.ownID(shard, text(m[9]), text(m[10])))
	}
	if len(d.Metadata) == 0 {
		d.Metadata = nil
	}
	if d.State == docindex.Completed {
		d.Due, d.Metadata = docindex.Never, docindex.OwnerOf(d.Metadata)
		if crawl, ok := crawlOfName(text(m[11])); ok {
			d.Metadata = docindex.OwnerOfCrawl(crawl)
		}
	}
	return d
}

// lastOf returns a document's last outcome: its kind and status, each -1 if not known, and its time
// in seconds since 1970, 0 if there is none.
func lastOf(kind, status, at int64) (l docindex.LastOutcome) {
	if at == 0 {
		return l
	}
	l.At = time.Unix(at, 0).UTC()
	if l.Known = kind >= 0 && kind < int64(docindex.Kinds); l.Known {
		l.Kind, l.Status, l.NoStatus = docindex.Kind(kind), int(max(0, status)), status < 0
	}
	return l
}

// Document is [docindex.Putter.Document].
func (s *Store) Document(ctx context.Context, docID []byte) (docindex.Document, error) {
	places, err := s.find(ctx, []string{string(docID)})
	if err != nil {
		return docindex.Document{}, err
	}
	docs, err := s.get(ctx, places)
	if err == nil && string(docs[0].DocID) != string(docID) {
		err = fmt.Errorf("doc_id %.100q: %w", docID, docindex.ErrUnknown)
	}
	return docs[0], err
}

// Find is [docindex.Frontier.Find].
func (s *Store) Find(ctx context.Context, queue docindex.Scope, url []byte) (docindex.Document, error) {
	hash, other := hashesOf("", url)
	w := whereOf(string(queue.Crawl), string(queue.Key), hash)
	a, err := s.one(ctx, w.shard, findScript, w.queue, hash, other, string(url))
	if err != nil {
		return docindex.Document{}, err
	}
	if parts := list(a.value); len(parts) == documentParts && text(parts[4]) == string(url) {
		return s.documentOf(w.shard, parts), nil
	}
	return docindex.Document{}, fmt.Errorf("url %.200q with key %.100q: %w", url, queue.Key, docindex.ErrUnknown)
}
