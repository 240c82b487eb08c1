package httpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"urlserver/docindex"
	"urlserver/docindex/internal/ndjson"
	"urlserver/internal/weburl"
	"urlserver/protocol"
)

const (
	// maxLine bounds a line: the longest URL with every byte escaped, and members that are ignored.
	maxLine = 64 << 10

	// surplus times max is how many lines are read. An index that sends more than it was asked for
	// regards all as taken, so the daemon takes what it can bear.
	surplus = 4
)

// ErrSurplus says that the index sent more than four times what it was asked for; the rest was not
// read.
var ErrSurplus = errors.New("the doc index sends far more candidates than it was asked for")

// Candidates is [docindex.Source.Candidates]. URLs are added to b as weburl serialises them. Lines
// that cannot be used are counted in b: as invalid if they have a usable DOC_ID, else as skipped.
// After an error b has what came before it, which is valid.
func (c *Client) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	if reject == nil {
		reject = []string{}
	}
	body, err := json.Marshal(struct {
		Max    int      `json:"max"`
		Reject []string `json:"reject"`
	}{max, reject})
	if err != nil {
		return err
	}
	resp, err := c.post(ctx, "candidates", "application/json", body)
	if err != nil {
		return fmt.Errorf("candidates: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("candidates: %w", statusError(resp))
	}
	if err := readCandidates(resp.Body, resp.Header.Get("Content-Type"), max, b); err != nil {
		return fmt.Errorf("candidates: %s: %w", resp.Request.URL.Redacted(), err)
	}
	return nil
}

// readCandidates adds the candidates in an answer's body.
func readCandidates(body io.Reader, contentType string, max int, b *docindex.Batch) error {
	most := surplus * max
	typed := isNDJSON(contentType) // an empty body may have any type
	in := ndjson.NewReader(ndjson.Limit(body, int64(most)*maxLine), maxLine)
	for taken := 0; ; {
		line, err := in.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, ndjson.ErrTooLong):
			b.Skip()
			taken++
			continue
		case err != nil:
			return fmt.Errorf("body broke off after line %d: %w", in.Number(), err)
		case len(line) == 0:
			continue
		case !typed:
			return fmt.Errorf("Content-Type is %.60q, not application/x-ndjson", contentType)
		case taken == most:
			return ErrSurplus
		}
		addCandidate(b, line)
		taken++
	}
}

// isNDJSON accepts the types that a simple index may give its lines, and rejects what is surely no
// index, such as a login page.
func isNDJSON(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return contentType == "" || media == "text/plain" || media == "application/octet-stream" ||
		strings.HasSuffix(media, "json") || strings.HasSuffix(media, "jsonl")
}

func addCandidate(b *docindex.Batch, line []byte) {
	d, err := ndjson.ParseDocument(line)
	if !protocol.ValidDocID(d.DocID) {
		b.Skip()
		return
	}
	if err == nil {
		u, badURL := weburl.Parse(d.URL)
		payload, badPayload := docindex.DecodePayload(d.Payload)
		if badURL == nil && badPayload == nil && protocol.ValidURL(u.Text()) && len(payload) <= docindex.MaxPayload {
			b.AddFor(d.DocID, u.Text(), d.Priority, string(d.SpiderID), "")
			b.AttachPayload(payload)
			return
		}
	}
	b.AddInvalid(d.DocID, d.URL)
}
