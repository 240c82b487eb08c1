package crawlcontrol

import (
	"bytes"
	"context"
	"encoding/json"
)

// Reply is the reply to a message, or the notice of a crawl's end.
type Reply struct {
	Of      int    // index of the message in the batch; -1 for notices
	App     string // the application that it is for; "" if unknown
	Body    []byte // JSON
	Refused bool   // the message was not a valid request
	NoReply bool   // the client does not wait for it: a crawl request was accepted

	told func(context.Context) // records that the reply has been delivered; nil: nothing to record
}

// Acknowledged records that the reply has reached its client. Until then, the reply to another stop
// of the same crawl has the same count.
func (r *Reply) Acknowledged(ctx context.Context) {
	if r.told != nil {
		r.told(ctx)
	}
}

// ended is the reply to stop, and the notices of crawls that have expired or are completed.
type ended struct {
	Action       string  `json:"action"`
	TotalPurged  *uint64 `json:"total_purged,omitempty"`
	TotalExpired *uint64 `json:"total_expired,omitempty"`
	TotalDone    *uint64 `json:"total_done,omitempty"`
	UUID         string  `json:"uuid,omitempty"`
	SpiderID     string  `json:"spiderid"`
	AppID        string  `json:"appid"`
	CrawlID      string  `json:"crawlid"`
	ServerTime   int64   `json:"server_time"`
}

// taken is the reply to a crawl request.
type taken struct {
	Action     string `json:"action"`
	Status     string `json:"status"` // new, known or dropped
	SpiderID   string `json:"spiderid"`
	AppID      string `json:"appid"`
	CrawlID    string `json:"crawlid"`
	ServerTime int64  `json:"server_time"`
}

type refused struct {
	Error string `json:"error"`
	UUID  string `json:"uuid,omitempty"`
	AppID string `json:"appid,omitempty"`
}

// encode returns a reply as JSON without a line end.
func encode(v any) []byte {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // strings and numbers always can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// AsError returns an error reply in place of a reply that cannot be sent.
func (r Reply) AsError(why error) Reply {
	var was struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(r.Body, &was) // our own JSON
	return refusal(&Refusal{UUID: was.UUID, App: r.App, cause: why}, r.Of)
}
