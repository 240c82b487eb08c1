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
	quietAfter = 10 * time.Second // without a word from the daemon, which says something each second
)

// news is what the daemon's live stream says; what it does not say is nil.
type news struct {
	status *liveStatus
	top    *top
}

// liveStatus is the status with what is in the way.
type liveStatus struct {
	status
	NotReady    []string `json:"not_ready"`
	MoreSpiders int      `json:"more_spiders"`
}

// top is what the command shows of /api/top.
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
}

// follow hands out what the daemon's live stream says until it ends, which is an error, or ctx does.
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
