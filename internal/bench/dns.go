package main

import (
	"context"
	"errors"
	"net"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

const socketBuffer = 4 << 20 // bytes; queries come in bursts

// names is the role of a DNS server over UDP that knows every hostName. Host n has only address n
// modulo Addrs. Other names do not exist.
type names struct {
	Addrs int

	conn *net.UDPConn
	done sync.WaitGroup
}

// open returns the server's address.
func (s *names) open(context.Context) (ready any, err error) {
	s.conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	if err := s.conn.SetReadBuffer(socketBuffer); err != nil {
		return nil, err
	}
	s.done.Go(s.serve)
	return s.conn.LocalAddr().String(), nil
}

func (s *names) close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.done.Wait()
	return err
}

func (s *names) serve() {
	in, out := make([]byte, 4096), make([]byte, 0, 4096)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(in)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if answer, err := s.answer(in[:n], out[:0]); err == nil {
			_, _ = s.conn.WriteToUDPAddrPort(answer, from) // a client without an answer asks again
		}
	}
}

// answer returns the answer to a query of one question.
func (s *names) answer(query, to []byte) ([]byte, error) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil {
		return nil, err
	}
	n, known := numberIn(trimDot(q.Name.String()))
	head.Response, head.RecursionAvailable = true, true
	if !known {
		head.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(to, head)
	if err := errors.Join(b.StartQuestions(), b.Question(q), b.StartAnswers()); err != nil {
		return nil, err
	}
	if known && q.Type == dnsmessage.TypeA {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 3600}
		if err := b.AResource(h, dnsmessage.AResource{A: addrOf(n % s.Addrs).As4()}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

func trimDot(name string) string {
	if n := len(name); n > 0 && name[n-1] == '.' {
		return name[:n-1]
	}
	return name
}
