package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/protocol"
)

// entry is a line: a URL to put, a setting, the settings of a crawl, or none of these: the end.
type entry struct {
	put     docindex.Put // its URL is empty if the line is not of a URL
	setting *docindex.Setting

	crawl    string // of settings
	settings []byte // of a crawl; empty if the line is not of them
}

// parse parses a line.
func parse(line []byte) (entry, error) {
	var in pb.URLItem
	bad := protojson.Unmarshal(line, &in)
	if bad == nil {
		put, err := putOf(&in)
		return entry{put: put}, err
	}
	if e, ours, err := parseSetting(line); ours || err != nil {
		return e, err
	}
	return entry{}, fmt.Errorf("neither a URLItem nor a setting: %.200s", plain(bad))
}

// putOf converts a URLItem for [docindex.Puts.AddExact].
func putOf(in *pb.URLItem) (docindex.Put, error) {
	var info *pb.URLInfo
	put := docindex.Put{Created: int64(min(in.CreationDate, math.MaxInt64)), DocID: []byte(in.ID)}
	if !protocol.ValidDocID(put.DocID) {
		put.DocID = nil // the reply's ID of another kind of client
	}
	switch it := in.Item.(type) {
	case *pb.URLItem_Discovered:
		info, put.Due = it.Discovered.GetInfo(), docindex.Now
	case *pb.URLItem_Known:
		info, put.Due = it.Known.GetInfo(), dueOf(it.Known.GetRefetchableFromDate())
	default:
		return docindex.Put{}, errors.New("neither discovered nor known")
	}
	if info.GetUrl() == "" {
		return docindex.Put{}, errors.New("no url")
	}
	put.URL, put.Key, put.Crawl = []byte(info.Url), []byte(info.Key), crawlOf(info.CrawlID)
	return put, takeMetadata(&put, info.Metadata)
}

// dueOf converts a date to a due time.
func dueOf(date uint64) int64 {
	switch date {
	case 0:
		return docindex.Never
	case always:
		return 0
	}
	return int64(min(date, math.MaxInt64-1))
}

// crawlOf converts a crawl: DEFAULT is nothing.
func crawlOf(id string) []byte {
	if id == docindex.DefaultCrawl {
		return nil
	}
	return []byte(id)
}

// takeMetadata sets metadata and what it says of a document.
func takeMetadata(put *docindex.Put, metadata map[string]*pb.StringList) error {
	if len(metadata) == 0 {
		return nil
	}
	m, own := make(map[string][]string, len(metadata)), map[string]string{}
	for key, list := range metadata {
		switch key {
		case priorityKey, uniqueKey, depthKey, payloadKey:
			own[key] = strings.Join(list.GetValues(), ",")
		default:
			m[key] = list.GetValues()
		}
	}
	put.Metadata, put.Priority = docindex.EncodeMetadata(m), docindex.PriorityOf(m)
	put.Unique, put.Depth = docindex.IdentityIn(m)
	if unique, ours := own[uniqueKey]; ours {
		put.Unique = []byte(unique)
	}
	payload, err := docindex.DecodePayload([]byte(own[payloadKey]))
	if put.Payload = payload; err != nil {
		return fmt.Errorf("metadata %q: %w", payloadKey, err)
	}
	if text, ours := own[priorityKey]; ours {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fmt.Errorf("metadata %q is %.50q: it has to be an integer of 32 bits", priorityKey, text)
		}
		put.Priority = int32(n)
	}
	if text, ours := own[depthKey]; ours {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return fmt.Errorf("metadata %q is %.50q: it has to be an integer of 16 bits, not negative", depthKey, text)
		}
		put.Depth = uint16(n)
	}
	return nil
}

// settingLine is a line without a URL.
type settingLine struct {
	Set     *string
	Key     string
	Host    string
	CrawlID string
	Value   json.Number
	End     *json.Number

	Settings json.RawMessage // of a crawl
}

// parseSetting parses the line of a setting, or the end, which has none. ours is false if the line
// is neither.
func parseSetting(line []byte) (e entry, ours bool, err error) {
	var in settingLine
	loose := json.Unmarshal(line, &in)
	if in.End != nil && loose == nil {
		return e, true, nil
	}
	if in.Set == nil {
		return e, false, nil
	}
	strict := json.NewDecoder(bytes.NewReader(line))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&in); err != nil {
		return e, true, fmt.Errorf("setting: %w", err)
	}
	if *in.Set == crawlWord {
		e, err = in.ofCrawl()
		return e, true, err
	}
	e.setting, err = in.ofQueues()
	return e, true, err
}

// ofCrawl returns the settings of a crawl.
func (in *settingLine) ofCrawl() (e entry, err error) {
	switch {
	case in.CrawlID == "" || len(in.Settings) == 0:
		return e, errors.New("set crawl: crawlID and settings are wanted")
	case len(in.CrawlID) > docindex.MaxExtra:
		return e, fmt.Errorf("crawlID has more than %d bytes", docindex.MaxExtra)
	}
	return entry{crawl: in.CrawlID, settings: in.Settings}, nil
}

// ofQueues returns a setting of a queue, of a host, or of all.
func (in *settingLine) ofQueues() (s *docindex.Setting, err error) {
	which := slices.Index(settingWords[:], *in.Set)
	if which < 0 {
		return nil, fmt.Errorf("set %.50q: there are %s, %s", *in.Set, strings.Join(settingWords[:], ", "), crawlWord)
	}
	s = &docindex.Setting{Kind: docindex.SettingKind(which)}
	s.Key, s.Crawl = []byte(in.Key), crawlOf(in.CrawlID)
	if in.Host != "" {
		if len(s.Key)+len(s.Crawl) > 0 {
			return nil, errors.New("host stands beside key or crawlID: it is for all of them")
		}
		s.Key, s.Host = []byte(in.Host), true
	}
	if s.Value, err = strconv.ParseUint(in.Value.String(), 10, 64); err != nil {
		return nil, fmt.Errorf("value %.50q: it has to be an integer of 64 bits, not negative", in.Value)
	}
	return s, checkScope(s)
}

func checkScope(s *docindex.Setting) error {
	switch {
	case len(s.Key)+len(s.Crawl) > docindex.MaxExtra:
		return fmt.Errorf("key and crawlID have more than %d bytes", docindex.MaxExtra)
	case s.Host && s.Kind != docindex.SetDelay && s.Kind != docindex.SetBlock:
		return errors.New("host: only delay and block are for hosts")
	case len(s.Key) == 0 && (s.Kind == docindex.SetBlock || s.Kind == docindex.SetLimit):
		return errors.New("no key: it says which queue is meant")
	}
	return nil
}

// plain returns protojson's error without the places in the line, and without the spaces that
// protojson varies.
func plain(err error) string {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	return strings.TrimSpace(placeInLine.ReplaceAllString(text, ""))
}

var placeInLine = regexp.MustCompile(` ?\(line \d+:\d+\):?`)
