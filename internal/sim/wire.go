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
	id     uint32 // the engine's
	over   bool

	// Daemon to spider.
	writing bool
	waits   time.Duration // since when lines wait for the writer; negative: none do
	spare   []byte

	// Spider to daemon.
	under   string // said, and not all arrived
	sending bool   // the rest of under comes later
	pieces  pieces
	scanner *protocol.Scanner
	heard   []byte // arrived; the naive twin of the scanner
	lines   []engine.Line
}

func newConn(s *spider, id uint32) *conn {
	c := &conn{run: s.run, spider: s, id: id, waits: -1}
	c.pieces = pieces{run: s.run}
	c.scanner = protocol.NewScanner(&c.pieces)
	return c
}

// flush writes what waits for the spider, as a session of the real daemon does.
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

// write brings lines to the spider: at once, or some of them, and the rest later.
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
	if r.rng.IntN(20) == 0 { // it reads no more: the daemon hangs up
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

// read has the spider receive lines.
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

// say sends text to the daemon; it arrives at once, or in two pieces.
func (c *conn) say(text string) {
	c.under += text
	if c.sending {
		return
	}
	c.arrive()
}

func (c *conn) arrive() {
	r := c.run
	c.sending = false
	piece := c.under
	if r.chance(r.sc.Trouble.Pieces) {
		piece = piece[:r.rng.IntN(len(piece))]
	}
	c.under = c.under[len(piece):]
	if c.under != "" {
		c.sending = true
		r.after(r.between(0, 20*time.Millisecond), func() {
			if !c.over {
				c.arrive()
			}
		})
	}
	c.hear(piece)
}

// hear gives bytes to the real scanner and to its naive twin, and what the
// lines say to the engine and to the oracle.
func (c *conn) hear(piece string) {
	c.pieces.bytes = append(c.pieces.bytes, piece...)
	c.heard = append(c.heard, piece...)
	c.lines = c.lines[:0]
	good := true
	for good && (bytes.IndexByte(c.heard, '\n') >= 0 || len(c.heard) >= protocol.MaxLine) {
		good = c.next()
	}
	if len(c.lines) > 0 {
		c.run.engine.Lines(c.id, c.lines)
	}
	if !good {
		c.end()
	}
}

// next takes a line; the connection has to end where it answers false.
func (c *conn) next() bool {
	line, err := c.scanner.Next()
	n := bytes.IndexByte(c.heard, '\n')
	if n < 0 || n >= protocol.MaxLine {
		if err == nil {
			c.run.oracle.wrong(RuleScanner, "a line of more than %d bytes was taken", protocol.MaxLine)
		}
		return false
	}
	want := strings.TrimSuffix(string(c.heard[:n]), "\r")
	c.heard = append(c.heard[:0], c.heard[n+1:]...)
	if err != nil || string(line) != want {
		c.run.oracle.wrong(RuleScanner, "%q was taken for %q, %v", want, line, err)
	}
	status, err := protocol.ParseStatus(line)
	c.run.oracle.status(c.id, want)
	c.lines = append(c.lines, engine.Line{Status: status, Bad: err != nil})
	return true
}

// cut ends the connection in the middle of what is under way.
func (c *conn) cut() {
	piece := c.under[:c.run.rng.IntN(len(c.under)+1)]
	c.under = ""
	c.hear(piece)
	c.end()
}

// end hangs up. What came after the last whole line is no line.
func (c *conn) end() {
	r := c.run
	if c.over {
		return
	}
	c.over = true
	c.pieces.ended = true
	if line, err := c.scanner.Next(); len(c.heard) < protocol.MaxLine && err == nil {
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

// pieces is a reader that gives out bytes as they come, some at a time.
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
