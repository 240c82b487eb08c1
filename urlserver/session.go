package urlserver

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/internal/netguard"
	"urlserver/protocol"
	"urlserver/urlserver/engine"
)

const (
	authTimeout = 10 * time.Second
	maxAuth     = len("AUTH ") + configs.MaxToken + len("\r\n")
	lineBatch   = 512 // lines handed to the owner at once
)

// session is a connection with a spider. One goroutine reads, one writes. Only the owner uses the
// fields below lines.
type session struct {
	d    *Daemon
	conn net.Conn
	log  zerolog.Logger
	quit chan struct{} // closed when the connection ends
	stop sync.Once

	peer    string // identifies successive spiders: the dialled address, or the IP of an inbound connection
	inbound bool   // the spider opened the connection
	fresh   bool   // no line has arrived; used by the reader
	mute    bool   // neither SPIDER nor a line about a transaction has arrived; used by the reader

	notSpider bool // the first line is not of the line protocol; set before leave is posted

	lines chan output // for the writer; it has at most one buffer

	asks    asks        // PUT and COUNT; used by the reader
	answers chan []byte // for the writer

	id      uint32
	spare   []byte
	writing bool
}

var (
	errAuth   = errors.New("the first line is not AUTH with the right token")
	errSpider = errors.New(
		"SPIDER is to be followed by a spiderid of 1 to 64 printable ASCII characters without space")
	errNotSpider = errors.New("its first bytes are HTTP, TLS or STUN: a browser, or a client or server " +
		"of another protocol, is connected here")
	errForeign = errors.New("it names a transaction that never was, or that another spider holds")
)

// serve serves a spider until the connection ends. Its first line must carry token, unless that is
// "". dialled is the address that the daemon dialled, or "" for an inbound connection. serve leaves
// an inbound connection open that it refuses.
func (d *Daemon) serve(conn net.Conn, token, dialled string) (refused bool) {
	inbound := dialled == ""
	s := &session{
		d: d, conn: conn, quit: make(chan struct{}), lines: make(chan output, 1), fresh: token == "", mute: true,
		answers: make(chan []byte), inbound: inbound, peer: cmp.Or(dialled, ipOf(conn.RemoteAddr())),
		log: d.log.With().Stringer("spider", conn.RemoteAddr()).Logger(),
	}
	rest, err := s.authorize(token)
	if err != nil {
		s.refuse(err)
		if inbound && !isOver(err) {
			return true
		}
		s.drop("refused")
		return false
	}
	netguard.MarkAuthenticated(conn.RemoteAddr())
	if !d.post(func(e *engine.Engine) { s.join(e) }) {
		s.drop("stopping")
		return false
	}
	s.log.Info().Msg("spider connected")
	var writer sync.WaitGroup
	writer.Go(s.write)
	var answering sync.WaitGroup
	defer answering.Wait() // last: the store may be slow
	s.asks = asks{worker: s.answer, start: answering.Go}
	err = s.read(protocol.NewScanner(s.guarded(io.MultiReader(bytes.NewReader(rest), conn))))
	s.drop("ended")
	if errors.Is(err, errNotSpider) {
		s.notSpider = true
		s.refuse(err)
	}
	writer.Wait()
	d.post(func(e *engine.Engine) { s.leave(e) })
	s.log.Info().AnErr("cause", err).Msg("spider gone")
	return false
}

// refuse logs a refused connection.
func (s *session) refuse(err error) {
	if n, ok := s.d.refusals.allow(time.Now()); ok {
		s.log.Warn().Err(err).Int("not_shown", n).Msg("spider refused")
	}
}

// ipOf returns the IP of an address, or the whole address if it has none.
func ipOf(addr net.Addr) string {
	if ip, _, err := net.SplitHostPort(addr.String()); err == nil {
		return ip
	}
	return addr.String()
}

// isOver reports whether a connection failed by its deadline or was closed by the peer.
func isOver(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) }

// authorize waits for the TLS handshake, if there is TLS, and for the line with the token, if one
// is required, for authTimeout at most. rest has the bytes that followed that line.
func (s *session) authorize(token string) (rest []byte, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(authTimeout)); err != nil {
		return nil, err
	}
	if conn, ok := s.conn.(*tls.Conn); ok {
		if err := conn.HandshakeContext(s.d.hard); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
	}
	if token != "" {
		if rest, err = checkToken(s.conn, token); err != nil {
			return nil, err
		}
	}
	return rest, s.conn.SetDeadline(time.Time{})
}

// checkToken reads the first line and compares the token in constant time. It uses little memory,
// because anybody may connect.
func checkToken(conn io.Reader, token string) (rest []byte, err error) {
	buf := make([]byte, maxAuth)
	n, end := 0, -1
	for end < 0 {
		if n == len(buf) {
			return nil, errAuth
		}
		m, err := conn.Read(buf[n:])
		n += m
		end = bytes.IndexByte(buf[:n], '\n')
		if err != nil && end < 0 {
			return nil, fmt.Errorf("%w: %w", errAuth, err)
		}
	}
	got, ok := protocol.ParseAuth(bytes.TrimSuffix(buf[:end], []byte("\r")))
	sum, want := sha256.Sum256(got), sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], want[:]) != 1 || !ok {
		return nil, errAuth
	}
	return buf[end+1 : n], nil
}

func (s *session) join(e *engine.Engine) {
	s.id = e.ConnectedFrom(s.conn.RemoteAddr().String(), s.peer)
	s.d.sessions[s.id] = s
	if s.inbound {
		e.AwaitHandshake(s.id)
	}
}

func (s *session) leave(e *engine.Engine) {
	delete(s.d.sessions, s.id)
	if s.notSpider {
		e.NotSpider(s.id)
	}
	mute, pause := e.Gone(s.id)
	if mute == 0 {
		return
	}
	if n, ok := s.d.mutes.allow(time.Now()); ok {
		s.log.Warn().Int("in_a_row", mute).Stringer("pause", pause.Round(time.Millisecond)).Int("not_shown", n).
			Msg("connection of a spider ended without a line about any document: look at its log; the next " +
				"spider from " + s.peer + " gets its first documents later, and few")
	}
}

// giveUp closes a connection on behalf of the engine.
func (s *session) giveUp(why string) {
	if n, ok := s.d.giveUps.allow(time.Now()); ok {
		s.log.Warn().Str("cause", why).Int("not_shown", n).Msg("hanging up on a spider")
	}
	if secure, ok := s.conn.(*tls.Conn); ok { // its Close would wait for a peer that does not read
		secure.NetConn().Close()
	}
	s.drop(why)
}

// drop closes the connection, which ends the reader and the writer.
func (s *session) drop(why string) {
	s.stop.Do(func() {
		close(s.quit)
		s.conn.Close()
		s.log.Debug().Str("why", why).Msg("connection closed")
	})
}

// batch is the lines of one read, except PUT and COUNT.
type batch struct {
	spiderID string // of a SPIDER line, which counts before lines; "": there was none
	lines    []engine.Line
}

var batches = sync.Pool{New: func() any { return &batch{lines: make([]engine.Line, 0, lineBatch)} }}

// read posts the spider's lines to the owner, as many at a time as have arrived. It hands PUT and
// COUNT lines to asks, and waits while asks has too many.
func (s *session) read(scanner *protocol.Scanner) error {
	for {
		b := batches.Get().(*batch)
		err := s.fill(scanner, b)
		if (len(b.lines) > 0 || b.spiderID != "") && !s.d.post(func(e *engine.Engine) { s.take(e, b) }) {
			return ErrStopped
		}
		if s.asks.hand(s.quit); err != nil {
			return readError(err)
		}
	}
}

// guarded returns a reader that fails with errNotSpider if the first bytes are those of another
// protocol, which may have no line ends: its client would receive documents meanwhile.
func (s *session) guarded(r io.Reader) io.Reader {
	if !s.fresh {
		return r
	}
	return &guard{r: r}
}

type guard struct {
	r    io.Reader
	seen []byte // the beginning of the first line
	over bool   // seen has been accepted
}

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if !g.over {
		g.seen = append(g.seen, p[:min(n, protocol.ForeignBytes)]...)
		if protocol.IsForeign(g.seen) {
			return 0, errNotSpider
		}
		g.over = len(g.seen) >= protocol.ForeignBytes
	}
	return n, err
}

// handshake handles the lines with which a spider may begin: AUTH, also if no token is required,
// and SPIDER. A malformed SPIDER ends the connection, because its sender does not want the
// documents of other pools.
func (s *session) handshake(line []byte, b *batch) (ok bool, err error) {
	if !s.mute {
		return false, nil
	}
	if _, ok := protocol.ParseAuth(line); ok && s.fresh {
		s.fresh = false
		return true, nil
	}
	if verb, _, _ := bytes.Cut(line, []byte(" ")); string(verb) != "SPIDER" {
		return false, nil
	}
	spiderID, ok := protocol.ParseSpider(line)
	if !ok {
		return false, errSpider
	}
	s.fresh, s.mute = false, false
	b.spiderID = string(spiderID)
	return true, nil
}

// fill reads the lines that are available without waiting. It fails if the first line is one of
// HTTP: a web page can make a browser send lines, but it cannot choose the first one.
func (s *session) fill(scanner *protocol.Scanner, b *batch) error {
	b.spiderID, b.lines = "", b.lines[:0]
	for len(b.lines) < lineBatch {
		line, err := scanner.Next()
		if err != nil {
			return err
		}
		if err := s.hear(line, b); err != nil {
			return err
		}
		if !scanner.Buffered() && !s.waitsForMore(b) {
			return nil
		}
	}
	return nil
}

// waitsForMore reports whether no line has come yet that is to be passed on.
func (s *session) waitsForMore(b *batch) bool {
	return len(b.lines) == 0 && b.spiderID == "" && s.asks.empty()
}

// hear adds a line to the batch or to asks.
func (s *session) hear(line []byte, b *batch) error {
	if s.fresh && protocol.IsHTTP(line) {
		return errNotSpider
	}
	status, err := protocol.ParseStatus(line)
	if err == nil {
		s.fresh, s.mute = false, false
		b.lines = append(b.lines, engine.Line{Status: status, Asked: s.asks.added()})
		return nil
	}
	if n, ok := protocol.ParseRoom(line); ok {
		s.fresh = false
		b.lines = append(b.lines, engine.Line{IsRoom: true, Room: n})
		return nil
	}
	if protocol.ParsePayload(line) {
		s.fresh = false
		b.lines = append(b.lines, engine.Line{IsPayload: true})
		return nil
	}
	if s.asks.add(line) {
		s.fresh = false
		return nil
	}
	greeting, bad := s.handshake(line, b)
	switch {
	case bad == nil && greeting:
		return nil
	case bad != nil:
		return bad
	}
	s.badLine(line, err)
	s.fresh, s.mute = false, false
	b.lines = append(b.lines, engine.Line{Bad: true, Asked: s.asks.added()})
	return nil
}

func (s *session) take(e *engine.Engine, b *batch) {
	if b.spiderID != "" {
		e.JoinPool(s.id, b.spiderID)
	}
	if len(b.lines) > 0 {
		if l := e.Lines(s.id, b.lines); l != nil {
			s.badLine(protocol.AppendTrans(nil, l.Trans), errForeign)
		}
	}
	batches.Put(b)
}

// badLine logs a line, except one that may contain a token.
func (s *session) badLine(line []byte, err error) {
	if verb := line[:min(len(line), len("AUTH"))]; bytes.EqualFold(verb, []byte("AUTH")) {
		line = []byte("AUTH ***")
	}
	if n, ok := s.d.badLines.allow(time.Now()); ok {
		s.log.Warn().Err(err).Bytes("line", line[:min(len(line), 100)]).Int("not_shown",
			n).Msg("bad line from spider ignored")
	}
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// flush passes the engine's output to the writer. While the writer is busy it does nothing; written
// calls flush again.
func (s *session) flush(e *engine.Engine) {
	if s.writing {
		return
	}
	lines := e.Output(s.id, s.spare)
	if lines == nil {
		return
	}
	s.writing, s.spare = true, nil
	s.lines <- output{lines: lines, by: s.d.start.Add(e.WriteBy(s.id))} // never blocks: the writer is not busy
}

// output is lines for the writer.
type output struct {
	lines []byte
	by    time.Time // write deadline
}

// write writes buffers until the connection ends. It closes the connection of a spider that has not
// received a line when its status is overdue: other spiders get the document, and two must not
// fetch it.
func (s *session) write() {
	for {
		select {
		case out := <-s.lines:
			if err := s.send(out); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					s.log.Warn().Msg("lines were not written in time: the spider does not read, or the " +
						"daemon stood still; hanging up")
				}
				s.drop("write failed")
				return
			}
			s.d.post(func(e *engine.Engine) { s.written(e, out.lines) })
		case text := <-s.answers:
			by := time.Now().Add(s.d.cfg.Load().TimeoutSpiderStatus)
			if err := s.send(output{lines: text, by: by}); err != nil {
				s.drop("write failed")
				return
			}
		case <-s.quit:
			return
		}
	}
}

func (s *session) send(out output) error {
	if err := s.conn.SetWriteDeadline(out.by); err != nil {
		return err
	}
	_, err := s.conn.Write(out.lines)
	return err
}

func (s *session) written(e *engine.Engine, spare []byte) {
	s.writing, s.spare = false, spare
	if s.d.sessions[s.id] != s {
		return
	}
	e.Written(s.id)
	s.flush(e)
}
