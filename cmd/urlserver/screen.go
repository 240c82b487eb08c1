package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Control sequences of terminals (ECMA-48; the first two are xterm's, and supported everywhere).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// Marks that fit replaces with control sequences. They are no characters, so no data from a daemon
// can contain one.
const (
	bold    = "\ufdd0"
	inverse = "\ufdd1"
	plain   = "\ufdd2"
	red     = "\ufdd3"
	yellow  = "\ufdd4"
	green   = "\ufdd5"
	faint   = "\ufdd6"
)

const askTimeout = 5 * time.Second // of a call that a key causes

// watchScreen shows the daemon on a terminal until q is pressed, the daemon ends, or ctx ends.
func watchScreen(ctx context.Context, c *client, in, out *os.File) (err error) {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(int(in.Fd()), was)) }()
	fmt.Fprint(out, enterScreen)
	defer fmt.Fprint(out, leaveScreen)
	ctx, end := context.WithCancel(ctx)
	defer end()

	told, ended := make(chan news), make(chan error, 1)
	go func() {
		ended <- c.follow(ctx, func(n news) {
			select {
			case told <- n:
			case <-ctx.Done():
			}
		})
	}()
	keys := make(chan []byte)
	go readKeys(ctx, in, keys) // ends with the process: a read from a terminal cannot be interrupted
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)

	v := view{client: c, order: byHeld}
	for {
		width, height, sizeErr := term.GetSize(int(out.Fd()))
		if sizeErr != nil {
			width, height = 80, 24
		}
		if _, err := out.WriteString(v.draw(width, height, time.Now())); err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
		select {
		case n := <-told:
			v.take(ctx, n)
		case k, more := <-keys:
			if !more || v.press(ctx, k) {
				return nil
			}
		case <-resized:
		case err := <-ended:
			return err
		}
	}
}

// readKeys sends the typed bytes to keys.
func readKeys(ctx context.Context, in *os.File, keys chan<- []byte) {
	defer close(keys)
	for {
		buf := make([]byte, 64)
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		select {
		case keys <- buf[:n]:
		case <-ctx.Done():
			return
		}
	}
}

// view is the state of the screen.
type view struct {
	client *client
	status *liveStatus
	top    *top
	rates  rates

	order   order
	reverse bool
	held    bool   // whether the view is frozen
	at      int    // row of the cursor
	help    bool   // whether the keys are shown instead of the table
	search  string // part of a host or group
	typing  bool   // whether the search is being typed
	sure    bool   // whether pausing or resuming waits for a confirmation
	asked   string // the host that found is about: the search, or the row at the cursor
	found   string // why nothing is sent to it
	note    string // the result of the last key
}

func (v *view) take(ctx context.Context, n news) {
	if v.held {
		return
	}
	if n.status != nil {
		v.status = n.status
		v.rates.add(n.status)
	}
	if n.top != nil {
		v.top = n.top
		v.explain(ctx)
	}
}

// press handles typed bytes, and reports whether they end the screen.
func (v *view) press(ctx context.Context, typed []byte) (quit bool) {
	for len(typed) > 0 {
		if n := sequence(typed); n > 0 {
			v.arrow(string(typed[1:n]))
			typed = typed[n:]
			continue
		}
		k := typed[0]
		typed = typed[1:]
		switch {
		case k == 3: // Ctrl-C, which is a plain byte in raw mode
			return true
		case v.typing:
			v.edit(ctx, k)
		case v.sure:
			v.answer(ctx, k)
		case v.help:
			v.help = false
		case k == 'q':
			return true
		case k == '\r' || k == '\n':
			v.explainRow(ctx)
		default:
			v.key(k)
		}
	}
	return false
}

// sequence returns the length of the control sequence (ECMA-48, CSI and SS3) at the start of typed,
// as arrow keys send it. 0: there is none.
func sequence(typed []byte) int {
	if len(typed) < 3 || typed[0] != 0x1b || typed[1] != '[' && typed[1] != 'O' {
		return 0
	}
	for i := 2; i < len(typed); i++ {
		if typed[i] >= '@' && typed[i] <= '~' {
			return i + 1
		}
	}
	return len(typed)
}

// arrow handles the part of an arrow key's sequence after ESC.
func (v *view) arrow(sent string) {
	switch sent {
	case "[A", "OA":
		v.at--
	case "[B", "OB":
		v.at++
	}
	v.at = max(0, min(v.at, len(v.rows())-1))
}

// explainRow searches for the first host of the row at the cursor, and asks why nothing is sent to
// it.
func (v *view) explainRow(ctx context.Context) {
	rows := v.rows()
	if v.at >= len(rows) {
		return
	}
	host := rows[v.at].Group
	if len(rows[v.at].Hosts) > 0 {
		host = rows[v.at].Hosts[0]
	}
	v.found = v.why(ctx, host)
	v.asked = host
}

func (v *view) key(k byte) {
	v.note = ""
	switch k {
	case 'k':
		v.arrow("[A")
	case 'j':
		v.arrow("[B")
	case '?':
		v.help = true
	case ' ':
		v.held = !v.held
	case '/':
		v.typing, v.search, v.asked, v.found = true, "", "", ""
	case 'P':
		v.sure = v.status != nil
	case 0x1b:
		v.search, v.asked, v.found = "", "", ""
	default:
		for o, by := range orders {
			if by.key == k {
				v.reverse = order(o) == v.order && !v.reverse
				v.order = order(o)
			}
		}
	}
}

// edit handles a key while the search is typed.
func (v *view) edit(ctx context.Context, k byte) {
	switch {
	case k == '\r' || k == '\n':
		v.typing, v.asked = false, v.search
		v.explain(ctx)
	case k == 0x1b:
		v.typing, v.search, v.found = false, "", ""
	case (k == 0x7f || k == 8) && v.search != "":
		v.search = v.search[:len(v.search)-1]
	case k > ' ' && k < 0x7f && len(v.search) < 255:
		v.search += string(k)
	}
}

// answer handles the key that confirms pausing or resuming.
func (v *view) answer(ctx context.Context, k byte) {
	v.sure = false
	if k != 'y' && k != 'Y' {
		return
	}
	path, done := "/api/pause", "sending is paused"
	if v.status.Paused {
		path, done = "/api/resume", "sending goes on"
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var answer struct{ Paused bool }
	if _, err := v.client.call(ctx, http.MethodPost, path, "", nil, &answer); err != nil {
		done = err.Error()
	}
	v.note = done
}

// explain asks again about the last host.
func (v *view) explain(ctx context.Context) {
	if v.asked != "" && !v.typing {
		v.found = v.why(ctx, v.asked)
	}
}

// why returns why nothing is sent to a host; "": unknown.
func (v *view) why(ctx context.Context, host string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var x explanation
	if _, err := v.client.call(ctx, http.MethodGet, "/api/hosts/"+url.PathEscape(host), "", nil,
		&x); err != nil {
		return ""
	}
	return fmt.Sprintf("%s: %s; %d queued, %d in flight; came back: %s", x.Host, x.Why, x.Queued,
		x.InFlight, x.Fetched.String())
}

// order is an order of rows.
type order int

const byHeld order = 0

// orders has the key of each order, the name of its column, and its comparison.
var orders = []struct {
	key  byte
	name string
	less func(a, b *topSlot) int
}{
	{'d', "HELD", func(a, b *topSlot) int { return cmp.Compare(b.Held, a.Held) }},
	{'g', "GAP", func(a, b *topSlot) int { return cmp.Compare(b.Gap, a.Gap) }},
	{'n', "NEXT", func(a, b *topSlot) int { return cmp.Compare(nanos(b.NextSend), nanos(a.NextSend)) }},
	{'a', "ACTIVE", func(a, b *topSlot) int { return cmp.Compare(b.Active, a.Active) }},
	{'s', "SLOT", func(a, b *topSlot) int { return cmp.Compare(a.Slot, b.Slot) }},
}

func nanos(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixNano()
}

// matches reports whether a row contains the search.
func (v *view) matches(s *topSlot) bool {
	if v.search == "" || strings.Contains(s.Group, v.search) {
		return true
	}
	for _, h := range s.Hosts {
		if strings.Contains(h, v.search) {
			return true
		}
	}
	return false
}
