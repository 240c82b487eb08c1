package crawlcontrol

import (
	"bytes"
	"context"
	"encoding/json"
)

// Reply is what comes of a message, or of a crawl's end.
type Reply struct {
	Of      int    // the message's place in the batch; of notices -1
	App     string // the application it is for; empty where that is not known
	Body    []byte // JSON
	Refused bool   // the message was no good request
	Quiet   bool   // who sent the message does not wait for it: a crawl that was taken

	told func(context.Context) // nil: nothing depends on who knows of it
}

// Acknowledged says that the reply has got to whoever asked, and will not be made again. Until then, who asks for the same
// stop again is answered as much.
func (r *Reply) Acknowledged(ctx context.Context) {
	if r.told != nil {
		r.told(ctx)
	}
}

// ended is the reply to stop, and the notices of what has ended by itself.
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

// taken is the answer to a crawl, where one is wanted.
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

// encode writes a reply as it goes out.
func encode(v any) []byte {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // strings and numbers always can be
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Instead is an error in the place of a reply that cannot be sent.
func (r Reply) Instead(why error) Reply {
	var was struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(r.Body, &was) // it is our own
	return refusal(&Refusal{UUID: was.UUID, App: r.App, cause: why}, r.Of)
}
