package frontier

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/internal/robots"
)

// The metadata of a known URL that say how its last fetch ended, in lower case. The first ones are
// StormCrawler's.
var (
	statusKeys     = []string{"fetch.statuscode", "status"}
	retryAfterKeys = []string{"protocol.retry-after", "retry-after"}
)

// addAnswer takes the host's answer from the metadata of a known URL, if the metadata has it: the
// HTTP status, and Retry-After in seconds or as a date.
func (b *batch) addAnswer(info *pb.URLInfo) {
	status, err := strconv.Atoi(first(info.Metadata, statusKeys))
	if err != nil || status < 100 || status > 999 {
		return
	}
	a := docindex.HostAnswer{Host: bytes.Clone(docindex.HostOf(view(info.Url))), Status: status}
	if len(a.Host) == 0 {
		return
	}
	if status == 429 || status == 503 {
		a.RetryAfter = robots.ParseRetryAfter(first(info.Metadata, retryAfterKeys), time.Now())
	}
	b.answers = append(b.answers, a)
}

// first returns the first value of the first key that metadata have. Letters of either case are the
// same.
func first(metadata map[string]*pb.StringList, keys []string) string {
	for _, key := range keys {
		for name, list := range metadata {
			if strings.EqualFold(name, key) && len(list.GetValues()) > 0 {
				return strings.TrimSpace(list.Values[0])
			}
		}
	}
	return ""
}
