package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	maxEvent   = 1 << 20          // bytes of a line of the stream
	quietAfter = 10 * time.Second // time without a line; the daemon sends one each second
)

// news is an event of the daemon's live stream. A nil member did not change.
type news struct {
	status *liveStatus
	top    *top
}

// liveStatus is the status with the reasons why the daemon is not ready.
type liveStatus struct {
	status
	NotReady    []string `json:"not_ready"`
	MoreSpiders int      `json:"more_spiders"`
}

// top is the answer of /api/top.
type top struct {
	Busiest, Slowest []topSlot
	Blocked          []struct {
		Host  string
		Until time.Time
	}
	BlockedAll int `json:"blocked_all"`
}

type topSlot struct {
	Slot     uint32
	Group    string
	Hosts    []string
	Held     int
	Queued   int
	Active   int
	NextSend *time.Time `json:"next_send"`
	Gap      float64    `json:"gap_s"`
	HeldBy   string     `json:"held_by"` // "site", "address" or "network"; "": no level
}

// follow passes on the events of the daemon's live stream until ctx ends. The end of the stream is
// an error.
func (c *client) follow(ctx context.Context, tell func(news)) error {
	to := c.base.JoinPath("/api/live").String()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	quiet := time.AfterFunc(quietAfter, func() { cut(errQuiet) })
	defer quiet.Stop()
	answer, err := c.stream(ctx, http.MethodGet, "/api/live", "", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	in := bufio.NewScanner(answer)
	in.Buffer(nil, maxEvent)
	name := ""
	for in.Scan() {
		quiet.Reset(quietAfter)
		if text, ok := bytes.CutPrefix(in.Bytes(), []byte("event: ")); ok {
			name = string(text)
		}
		if text, ok := bytes.CutPrefix(in.Bytes(), []byte("data: ")); ok {
			n, err := parseNews(name, text)
			if err != nil {
				return fmt.Errorf("%s: %w", to, err)
			}
			tell(n)
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errQuiet):
		return fmt.Errorf("%s: %w", to, cause)
	case cause != nil:
		return errInterrupted
	case in.Err() != nil:
		return fmt.Errorf("%s: %w", to, in.Err())
	}
	return fmt.Errorf("%s: the daemon has ended the stream: it stops, or this terminal is too slow", to)
}

var errQuiet = fmt.Errorf("nothing has come for %v", quietAfter)

func parseNews(name string, text []byte) (n news, err error) {
	switch name {
	case "status":
		n.status = &liveStatus{}
		err = json.Unmarshal(text, n.status)
	case "top":
		n.top = &top{}
		err = json.Unmarshal(text, n.top)
	}
	return n, err
}
