package httpclient

import (
	"context"
	"fmt"
	"net/http"

	"urlserver/docindex"
	"urlserver/docindex/internal/ndjson"
)

// lineSize is about the length of an outcome's line without its texts.
const lineSize = len(`{"doc_id":"","url":"","outcome":"done","status":200,"attempts":1,"at":"2026-01-02T03:04:05Z"}`) + 1

// Outcomes is [docindex.Source.Outcomes]. The error is docindex.ErrUnwanted if the index answers
// that it wants none; any other means that it took none. A call may have any number of outcomes.
func (c *Client) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	if o.Len() == 0 {
		return nil
	}
	body := make([]byte, 0, o.Size()+o.Len()*lineSize)
	for i := range o.Len() {
		out := o.At(i)
		body = ndjson.AppendOutcome(body, ndjson.Outcome{
			DocID: out.DocID, URL: out.URL, Word: []byte(out.Kind.String()),
			Status: out.Status, Attempts: out.Attempts, At: out.At,
		})
	}
	resp, err := c.post(ctx, "outcomes", "application/x-ndjson", body)
	if err != nil {
		return fmt.Errorf("outcomes: %w", err)
	}
	defer drain(resp)
	switch code := resp.StatusCode; {
	case 200 <= code && code < 300:
		return nil
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", docindex.ErrUnwanted, statusError(resp))
	}
	return fmt.Errorf("outcomes: %w", statusError(resp))
}
