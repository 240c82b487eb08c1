package httpapi

import (
	"bytes"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// noFiles is a listener that can accept no connection for three minutes.
type noFiles struct {
	net.Listener
	until time.Time
}

func (l noFiles) Accept() (net.Conn, error) {
	if time.Now().After(l.until) {
		return nil, net.ErrClosed
	}
	return nil, tooMany{errors.New("too many open files")}
}

func (l noFiles) Close() error { return nil }

type tooMany struct{ error }

func (tooMany) Timeout() bool   { return false }
func (tooMany) Temporary() bool { return true }

// TestNoFiles: a listener that can accept no connection is a warning, once a minute. What peers cause is none.
func TestNoFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := stdlog.New(&netLog{log: zerolog.New(&log).Level(zerolog.InfoLevel)}, "", 0)
		l.Print("http: TLS handshake error from 192.0.2.1:1: EOF")
		if log.Len() > 0 {
			t.Errorf("a peer causes %s", log.Bytes())
		}
		srv := &http.Server{ErrorLog: l, ReadHeaderTimeout: time.Second}
		err := srv.Serve(noFiles{until: time.Now().Add(3*time.Minute - time.Second)})
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "too many open files"); n != 3 {
			t.Errorf("%d warnings in three minutes; want 3:\n%.1000s", n, log.String())
		}
	})
}
