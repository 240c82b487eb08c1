package grpcguard

import (
	"errors"
	"net"
	"net/netip"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"urlserver/internal/netguard"
)

// recordHandshake is the first byte of a TLS connection: the type of its first record (RFC 8446
// section 5.1). An HTTP/2 connection without TLS begins with "P".
const recordHandshake = 0x16

var errNotAllowed = errors.New("the client's network is none that may come without token and TLS")

// admission is a server's credentials. Clients from some networks need no token and may leave out
// TLS. The others need TLS if the server has it.
type admission struct {
	credentials.TransportCredentials // TLS, or insecure
	networks                         []netip.Prefix
	tls                              bool
	refuse                           bool // the others have no way in
}

// allowedInfo is the security of a connection from one of the networks.
type allowedInfo struct{ credentials.AuthInfo }

// admission returns the credentials that the server asks of its clients.
func (s Server) admission() credentials.TransportCredentials {
	creds := s.TLS
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	if len(s.AllowFrom) == 0 {
		return creds
	}
	return admission{creds, s.AllowFrom, s.TLS != nil, s.TLS == nil && s.Token == ""}
}

// ServerHandshake is [credentials.TransportCredentials].
func (a admission) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if !a.allows(raw.RemoteAddr()) {
		if a.refuse {
			return nil, nil, errNotAllowed
		}
		return a.TransportCredentials.ServerHandshake(raw)
	}
	netguard.MarkAuthenticated(raw.RemoteAddr())
	creds := a.TransportCredentials
	if a.tls {
		first := make([]byte, 1)
		if _, err := raw.Read(first); err != nil { // gRPC has set a deadline
			return nil, nil, err
		}
		raw = &peeked{Conn: raw, first: first}
		if first[0] != recordHandshake {
			creds = insecure.NewCredentials()
		}
	}
	conn, info, err := creds.ServerHandshake(raw)
	return conn, allowedInfo{info}, err
}

// Clone is [credentials.TransportCredentials].
func (a admission) Clone() credentials.TransportCredentials {
	a.TransportCredentials = a.TransportCredentials.Clone()
	return a
}

// allows reports whether an address is in one of the networks.
func (a admission) allows(remote net.Addr) bool {
	return netguard.InNetworks(remote.String(), a.networks)
}

// peeked is a connection of which the first byte has been read already.
type peeked struct {
	net.Conn
	first []byte // not given out yet
}

// Read is [net.Conn].
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 && len(b) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
