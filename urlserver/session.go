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

// session is a connection with a spider: a goroutine that reads and one that
// writes. The fields below the channel belong to the owner.
type session struct {
	d    *Daemon
	conn net.Conn
	log  zerolog.Logger
	quit chan struct{} // closed when the connection ends
	stop sync.Once

	peer  string // what spiders that come one after the other are known by: the address that was dialled, or the IP that dialled in
	came  bool   // it has dialled in
	fresh bool   // the reader's: no line has come yet
	mute  bool   // the reader's: no line has come but AUTH

	stranger bool // what has come first is none of the protocol's; set before leave is posted

	lines chan output // for the writer; at most one buffer is out

	id      uint32
	spare   []byte
	writing bool
}

var (
	errAuth     = errors.New("the first line is not AUTH with the right token")
	errSpider   = errors.New("SPIDER is to be followed by a spiderid of 1 to 64 printable ASCII characters without space")
	errStranger = errors.New("what it says first is none of the spider's protocol: a browser, or a client or server of another protocol, is connected here")
	errForeign  = errors.New("it names a transaction that never was, or that another spider holds")
)

// serve speaks with a spider until the connection ends. token is what its first line must
// tell; "": nothing. dialled is the address that it was dialled at; "": it has dialled in. One that did so and is refused
// stays open.
func (d *Daemon) serve(conn net.Conn, token, dialled string) (refused bool) {
	came := dialled == ""
	s := &session{
		d: d, conn: conn, quit: make(chan struct{}), lines: make(chan output, 1), fresh: token == "", mute: true,
		came: came, peer: cmp.Or(dialled, ipOf(conn.RemoteAddr())),
		log: d.log.With().Stringer("spider", conn.RemoteAddr()).Logger(),
	}
	rest, err := s.authorize(token)
	if err != nil {
		s.refuse(err)
		if came && !isOver(err) {
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
	err = s.read(protocol.NewScanner(s.guarded(io.MultiReader(bytes.NewReader(rest), conn))))
	s.drop("ended")
	if errors.Is(err, errStranger) {
		s.stranger = true
		s.refuse(err)
	}
	writer.Wait()
	d.post(func(e *engine.Engine) { s.leave(e) })
	s.log.Info().AnErr("cause", err).Msg("spider gone")
	return false
}

// refuse logs that a connection is refused.
func (s *session) refuse(err error) {
	if n, ok := s.d.refusals.allow(time.Now()); ok {
		s.log.Warn().Err(err).Int("not_shown", n).Msg("spider refused")
	}
}

// ipOf is the IP of an address, or the address where it has none.
func ipOf(addr net.Addr) string {
	if ip, _, err := net.SplitHostPort(addr.String()); err == nil {
		return ip
	}
	return addr.String()
}

// isOver tells if a connection failed because its time was, or because the peer has ended it.
func isOver(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) }

// authorize waits, not long, for the TLS handshake where there is TLS, and for the
// first line where a token is needed; rest came behind that.
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

// checkToken reads the first line. It takes little memory, as anybody may connect, and its
// comparison as long for each token, however long that is.
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
	if s.came {
		e.Await(s.id)
	}
}

func (s *session) leave(e *engine.Engine) {
	delete(s.d.sessions, s.id)
	if s.stranger {
		e.Disown(s.id)
	}
	mute, pause := e.Gone(s.id)
	if mute == 0 {
		return
	}
	if n, ok := s.d.mutes.allow(time.Now()); ok {
		s.log.Warn().Int("in_a_row", mute).Stringer("pause", pause.Round(time.Millisecond)).Int("not_shown", n).
			Msg("spider went without a word on what it was sent: look at its log; the next from " + s.peer + " gets its first documents later, and few")
	}
}

// giveUp ends a connection that the engine wants no more.
func (s *session) giveUp(why string) {
	if n, ok := s.d.giveUps.allow(time.Now()); ok {
		s.log.Warn().Str("cause", why).Int("not_shown", n).Msg("hanging up on a spider")
	}
	if secure, ok := s.conn.(*tls.Conn); ok { // whose Close would wait for one that does not read
		secure.NetConn().Close()
	}
	s.drop(why)
}

// drop ends the connection; the rest follows from that.
func (s *session) drop(why string) {
	s.stop.Do(func() {
		close(s.quit)
		s.conn.Close()
		s.log.Debug().Str("why", why).Msg("connection closed")
	})
}

var batches = sync.Pool{New: func() any { b := make([]engine.Line, 0, lineBatch); return &b }}

// read hands the spider's lines to the owner, as many at a time as have come.
func (s *session) read(scanner *protocol.Scanner) error {
	for {
		batch := batches.Get().(*[]engine.Line)
		err := s.fill(scanner, batch)
		if len(*batch) > 0 && !s.d.post(func(e *engine.Engine) { s.take(e, batch) }) {
			return ErrStopped
		}
		if err != nil {
			return readError(err)
		}
	}
}

// guarded is r until its first bytes cannot be a spider's: then it fails with errStranger. Clients of other
// protocols may send a lot before anything that looks like the end of a line, and would be handed documents
// meanwhile.
func (s *session) guarded(r io.Reader) io.Reader {
	if !s.fresh {
		return r
	}
	return &guard{r: r}
}

type guard struct {
	r    io.Reader
	seen []byte // of the first line
	over bool   // the rest is for the parser
}

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if !g.over {
		g.seen = append(g.seen, p[:min(n, guarded)]...)
		if !protocol.MayBegin(g.seen) {
			return 0, errStranger
		}
		g.over = len(g.seen) >= guarded
	}
	return n, err
}

// guarded is how many bytes tell a stranger.
const guarded = 64

// greets takes the lines that a spider may begin with: an AUTH that nobody asked for, and SPIDER. A SPIDER that cannot be
// read ends the connection: who says so does not want what others get.
func (s *session) greets(line []byte) (ok bool, err error) {
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
	name := string(spiderID)
	if !s.d.post(func(e *engine.Engine) { e.Enlist(s.id, name) }) {
		return false, ErrStopped
	}
	return true, nil
}

// fill reads lines until no more are there without waiting. A first line that is none of the protocol's ends
// the connection: a web page can have a browser send lines here, but not choose the first one.
func (s *session) fill(scanner *protocol.Scanner, batch *[]engine.Line) error {
	*batch = (*batch)[:0]
	for len(*batch) < lineBatch {
		line, err := scanner.Next()
		if err != nil {
			return err
		}
		status, err := protocol.ParseStatus(line)
		if err != nil {
			greeting, bad := s.greets(line)
			switch {
			case bad == nil && greeting:
				continue
			case s.fresh && !errors.Is(bad, ErrStopped):
				return fmt.Errorf("%w: %w", errStranger, errors.Join(bad, err))
			case bad != nil:
				return bad
			}
			s.badLine(line, err)
		}
		s.fresh, s.mute = false, false
		*batch = append(*batch, engine.Line{Status: status, Bad: err != nil})
		if !scanner.Buffered() {
			return nil
		}
	}
	return nil
}

func (s *session) take(e *engine.Engine, batch *[]engine.Line) {
	if l := e.Lines(s.id, *batch); l != nil {
		s.badLine(protocol.AppendTrans(nil, l.Trans), errForeign)
	}
	batches.Put(batch)
}

// badLine shows a line, but for one that may hold a token.
func (s *session) badLine(line []byte, err error) {
	if verb := line[:min(len(line), len("AUTH"))]; bytes.EqualFold(verb, []byte("AUTH")) {
		line = []byte("AUTH ***")
	}
	if n, ok := s.d.badLines.allow(time.Now()); ok {
		s.log.Warn().Err(err).Bytes("line", line[:min(len(line), 100)]).Int("not_shown", n).Msg("bad line from spider ignored")
	}
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// flush gives the writer what waits for the spider, unless it is busy; then
// written does.
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
	by    time.Time // they are worth nothing later
}

// write sends buffers until the connection ends. A spider that has not taken a line
// when its status is overdue has lost it: others get the document, and so that
// not both of them ask for it, its connection ends.
func (s *session) write() {
	for {
		select {
		case out := <-s.lines:
			if err := s.send(out); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					s.log.Warn().Msg("lines were not written in time: the spider does not read, or the daemon stood still; hanging up")
				}
				s.drop("write failed")
				return
			}
			s.d.post(func(e *engine.Engine) { s.written(e, out.lines) })
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
