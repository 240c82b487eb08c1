package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"urlserver/protocol"
)

// wire is the role of a daemon that decides nothing: it writes the lines of a number of URLs at
// once and skips the answers.
type wire struct {
	URLs, Hosts int

	lines    []byte
	listener net.Listener
	done     sync.WaitGroup
}

// open returns the address that the spider connects to.
func (w *wire) open(context.Context) (ready any, err error) {
	var url []byte
	for i := range w.URLs {
		url = appendAddrURL(url[:0], i, w.Hosts)
		t := protocol.Trans{Slot: uint32(i % w.Hosts), Generation: uint32(i / w.Hosts)}
		w.lines = protocol.AppendFetch(w.lines, t, fmt.Append(nil, i+1), addrOf(i%w.Hosts), url)
	}
	w.listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.done.Go(w.serve)
	return w.listener.Addr().String(), nil
}

// serve serves one connection. It ignores errors; the spider reports them.
func (w *wire) serve() {
	conn, err := w.listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	w.done.Go(func() { _, _ = conn.Write(w.lines) })
	_, _ = io.Copy(io.Discard, conn)
}

func (w *wire) close() error {
	if w.listener == nil {
		return nil
	}
	err := w.listener.Close()
	w.done.Wait()
	return err
}
