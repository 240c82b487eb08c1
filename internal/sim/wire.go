package sim

import (
	"bytes"
	"io"
	"strings"
	"time"

	"urlserver/protocol"
	"urlserver/urlserver/engine"
)

// conn is a connection between the daemon and a spider.
type conn struct {
	run    *run
	spider *spider
	id     uint32 // the engine's id of the connection
	over   bool

	// Daemon to spider.
	writing bool
	waits   time.Duration // since when lines may wait for the writer; negative: none do
	spare   []byte

	// Spider to daemon.
	unsent   string // sent by the spider, and not arrived
	sending  bool   // unsent arrives later
	pieces   pieces
	scanner  *protocol.Scanner
	received []byte // arrived, and not split into lines yet
	lines    []engine.Line
	asks     []string // PUT and COUNT lines that have arrived at once
}

func newConn(s *spider, id uint32) *conn {
	c := &conn{run: s.run, spider: s, id: id, waits: -1}
	c.pieces = pieces{run: s.run}
	c.scanner = protocol.NewScanner(&c.pieces)
	return c
}

// flush writes the lines that wait for the spider, as a session of the daemon does.
func (c *conn) flush() {
	r := c.run
	if c.writing {
		if c.waits < 0 {
			c.waits = r.now
		}
		return
	}
	out := r.engine.Output(c.id, c.spare)
	if len(out) == 0 {
		return
	}
	c.spare = nil
	r.did.Writes++
	since := r.now
	if c.waits >= 0 {
		since = c.waits - 1
	}
	c.waits = -1
	lines := strings.SplitAfter(string(out), "\n")
	lines = lines[:len(lines)-1]
	for _, line := range lines {
		r.trace.text(r.now, line)
		r.oracle.line(c.id, strings.TrimSuffix(line, "\n"), since)
	}
	c.write(lines, out, since)
}

// write delivers lines to the spider: all at once, or some of them now and the rest later.
func (c *conn) write(lines []string, buf []byte, since time.Duration) {
	r := c.run
	if !r.chance(r.sc.Trouble.Stall) {
		c.read(lines, since)
		c.written(buf)
		return
	}
	c.writing = true
	n := r.rng.IntN(len(lines) + 1)
	c.read(lines[:n], since)
	took := r.between(2*time.Millisecond, r.sc.Config.TimeoutSpiderStatus/4)
	if r.rng.IntN(20) == 0 { // the spider stops reading: the daemon closes the connection
		r.after(r.sc.Config.TimeoutSpiderStatus, c.end)
		return
	}
	r.after(took, func() {
		if !c.over {
			c.writing = false
			c.read(lines[n:], since)
			c.written(buf)
			c.flush()
		}
	})
}

// read passes lines to the spider.
func (c *conn) read(lines []string, since time.Duration) {
	for _, line := range lines {
		c.spider.receive(strings.TrimSuffix(line, "\n"), since)
	}
}

func (c *conn) written(buf []byte) {
	c.spare = buf
	c.run.engine.Written(c.id)
	c.run.oracle.written(c.id)
}

// send sends text to the daemon. It arrives at once, or in pieces.
func (c *conn) send(text string) {
	c.unsent += text
	if c.sending {
		return
	}
	c.arrive()
}

func (c *conn) arrive() {
	r := c.run
	c.sending = false
	piece := c.unsent
	if r.chance(r.sc.Trouble.Pieces) {
		piece = piece[:r.rng.IntN(len(piece))]
	}
	c.unsent = c.unsent[len(piece):]
	if c.unsent != "" {
		c.sending = true
		r.after(r.between(0, 20*time.Millisecond), func() {
			if !c.over {
				c.arrive()
			}
		})
	}
	c.receive(piece)
}

// receive splits bytes of the spider into lines, with the real scanner and with a naive model of
// it, and passes the statuses to the engine and the oracle.
func (c *conn) receive(piece string) {
	c.pieces.bytes = append(c.pieces.bytes, piece...)
	c.received = append(c.received, piece...)
	c.lines = c.lines[:0]
	good := true
	for good && (bytes.IndexByte(c.received, '\n') >= 0 || len(c.received) >= protocol.MaxLine) {
		good = c.next()
	}
	if len(c.asks) > 0 {
		c.run.index.lines(c, c.asks)
		c.asks = c.asks[:0]
	}
	if len(c.lines) > 0 {
		c.run.engine.Lines(c.id, c.lines)
	}
	if !good {
		c.end()
	}
}

// next handles one line. If it returns false, the connection must end.
func (c *conn) next() bool {
	line, err := c.scanner.Next()
	n := bytes.IndexByte(c.received, '\n')
	if n < 0 || n >= protocol.MaxLine {
		if err == nil {
			c.run.oracle.wrong(RuleScanner, "a line of more than %d bytes was taken", protocol.MaxLine)
		}
		return false
	}
	want := strings.TrimSuffix(string(c.received[:n]), "\r")
	c.received = append(c.received[:0], c.received[n+1:]...)
	if err != nil || string(line) != want {
		c.run.oracle.wrong(RuleScanner, "%q was taken for %q, %v", want, line, err)
	}
	_, _, isPut := protocol.ParsePut(line)
	if _, _, isCount := protocol.ParseCount(line); isPut || isCount {
		c.asks = append(c.asks, want)
		return true
	}
	status, err := protocol.ParseStatus(line)
	c.run.oracle.status(c.id, want)
	l := engine.Line{Status: status, Bad: err != nil}
	if n, ok := protocol.ParseRoom(line); ok {
		l = engine.Line{IsRoom: true, Room: n}
	} else if protocol.ParsePayload(line) {
		l = engine.Line{IsPayload: true}
	}
	c.lines = append(c.lines, l)
	return true
}

// cut breaks the connection. Part of the text that has not arrived yet is lost.
func (c *conn) cut() {
	piece := c.unsent[:c.run.rng.IntN(len(c.unsent)+1)]
	c.unsent = ""
	c.receive(piece)
	c.end()
}

// end closes the connection. Bytes after the last line end are not a line.
func (c *conn) end() {
	r := c.run
	if c.over {
		return
	}
	c.over = true
	c.pieces.ended = true
	if line, err := c.scanner.Next(); len(c.received) < protocol.MaxLine && err == nil {
		r.oracle.wrong(RuleScanner, "half a line %q was taken for one", line)
	}
	r.oracle.gone(c.id)
	r.engine.Gone(c.id)
	r.again = true
	delete(r.conns, c.id)
	if c.spider.conn == c {
		c.spider.conn = nil
	}
	r.after(r.between(100*time.Millisecond, 30*time.Second), c.spider.connect)
}

// pieces is a reader that returns the bytes received so far, a random number at a time.
type pieces struct {
	run   *run
	bytes []byte
	ended bool
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.bytes) == 0 && p.ended {
		return 0, io.EOF
	}
	n := copy(b, p.bytes[:min(len(p.bytes), 1+p.run.rng.IntN(200))])
	p.bytes = append(p.bytes[:0], p.bytes[n:]...)
	return n, nil
}
