package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const maxCall = 64 << 20 // largest request for candidates, in bytes; it names all rejected hosts

// index is a doc index over HTTP that offers each URL once: address by address, all hosts of an
// address in one answer, so that no rejection splits them.
type index struct {
	urls, hosts, addrs int

	mu   sync.Mutex // guards next
	next int        // next address
}

// serve serves the index until stop is called.
func (x *index) serve() (base string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /candidates", x.candidates)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	stop = func() error {
		err := server.Shutdown(context.Background())
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}
	return "http://" + l.Addr().String(), stop, nil
}

func (x *index) candidates(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Max    int
		Reject []string
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCall)).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = w.Write(x.offer(call.Max, call.Reject)) // a client that has gone asks again
}

// offer returns at most limit candidates of whole addresses. It stops at an address with a rejected
// host.
func (x *index) offer(limit int, reject []string) []byte {
	rejected := make(map[int]bool, x.addrs)
	for _, name := range reject {
		if n, ok := numberIn(name); ok {
			rejected[n%x.addrs] = true
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var lines []byte
	for x.next < x.addrs && !rejected[x.next] {
		some, n := x.of(x.next, lines)
		if n > limit {
			break
		}
		lines, limit = some, limit-n
		x.next++
	}
	return lines
}

// of appends the candidates of the hosts at an address, and counts them. Host h is at address h
// modulo addrs.
func (x *index) of(addr int, lines []byte) ([]byte, int) {
	n := 0
	for host := addr; host < x.hosts; host += x.addrs {
		for doc := host; doc < x.urls; doc += x.hosts {
			lines = append(lines, `{"doc_id": "`...)
			lines = appendPadded(lines, doc, 7)
			lines = append(lines, `", "url": "`...)
			lines = append(appendNameURL(lines, doc, host), "\"}\n"...)
			n++
		}
	}
	return lines, n
}
