package chaos

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

var built struct { // by build
	sync.Once
	dir string
	out []byte
	err error
}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(built.dir)
	os.Exit(status)
}

// build builds the commands of the project the first time, and returns their folder.
func build(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "chaos"); built.err == nil {
			built.out, built.err = exec.Command("go", "build", "-o", built.dir+"/", "../../cmd/...").CombinedOutput()
		}
	})
	if built.err != nil {
		t.Fatalf("go build: %v\n%s", built.err, built.out)
	}
	return built.dir + "/"
}

// process is a command that runs, dies and runs again.
type process struct {
	t    *testing.T
	name string
	args func() []string // arguments of the next run
	log  string
	cmd  *exec.Cmd
	over chan struct{} // closed when cmd has ended
}

func (p *process) start() {
	p.t.Helper()
	args := p.args()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // if the test ends without cleaning up
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	over := make(chan struct{})
	p.over = over
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(over) }(p.cmd)
}

// signal sends a signal, unless the process has ended.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// runs reports whether the process has not ended.
func (p *process) runs() bool {
	select {
	case <-p.over:
		return false
	default:
		return true
	}
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.over
}

// tail returns the last lines of the process's log or, if the process crashed, the lines from where
// the Go runtime says why.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			return string(bytes.Join(lines[i:min(i+40, len(lines))], []byte("\n")))
		}
	}
	return string(bytes.Join(lines[max(0, len(lines)-15):], []byte("\n")))
}

const settings = `
Req_Host_Per_Sec = %g
Req_Host_Concurrent = %d
Timeout_Spider_Status = 60
[spider]
listen = %q
max_attempts = 100
[politeness]
site_per_sec = %g
site_concurrent = %d
[docindex]
%s
batch = 100
retry = "100ms"
max_retry = "1s"
quarantine = "1s"
[robots]
user_agent = %q
error_ttl = "1s" # a daemon that is frozen takes its own silence for the server's
[resolver]
servers = [%q]
allow_networks = ["127.0.0.0/8"]
min_ttl = "1s"
max_ttl = "1s"
[http]
listen = %q
[reservation]
lease = %q
penalty = %q
janitor = %q
%s
`

// daemon is one of the daemons. The index gives documents to one run of it, not to the next.
type daemon struct {
	process
	runsSoFar int
	frozen    bool
}

func (d *daemon) taker() string { return fmt.Sprintf("%s.%d", d.name, d.runsSoFar) }

func (r *rig) newDaemon(n int) *daemon {
	d := &daemon{process: process{t: r.t, name: fmt.Sprintf("daemon%d", n),
		log: filepath.Join(r.dir, fmt.Sprintf("daemon%d.log", n))}}
	names := r.world.serveNames(r.t, n)
	d.args = func() []string {
		d.runsSoFar++
		index := cmp.Or(r.docindex, fmt.Sprintf("kind = \"http\"\nurl = \"http://%s/%s\"", r.indexAddr, d.taker()))
		text := fmt.Sprintf(settings, perSec(r.address.gap), r.address.open, r.listens(n), perSec(r.site.gap),
			r.site.open, index, d.name,
			names, r.explains(n), r.lease, r.penalty, r.janitor, r.reservation(n)+r.rules())
		file := filepath.Join(r.dir, fmt.Sprintf("daemon%d.toml", n))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
		r.index.set(d.taker(), true, true)
		return []string{r.bin + "urlserver", "serve", file}
	}
	return d
}

// rules returns the settings of the shared network.
func (r *rig) rules() string {
	if r.cap.perSec == 0 {
		return ""
	}
	return fmt.Sprintf("\n[[rules]]\nnetworks = [%q]\nshared = true\nper_sec = %d\nconcurrent = %d\n",
		r.world.network(), r.cap.perSec, r.cap.open)
}

func perSec(gap time.Duration) float64 { return float64(time.Second) / float64(gap) }

// listens returns the address at which a daemon listens for spiders; dials returns that of its
// proxy.
func (r *rig) listens(n int) string { return r.world.own(30+n) + ":4101" }
func (r *rig) dials(n int) string   { return r.world.own(70+n) + ":4101" }

// explains returns the address of a daemon's /api.
func (r *rig) explains(n int) string { return r.world.own(30+n) + ":4180" }

// frontier returns the address at which a daemon serves URL Frontier clients.
func (r *rig) frontier(n int) string { return r.world.own(30+n) + ":7071" }

// explain logs what the daemons that can work answer about a host.
func (r *rig) explain(host string) {
	client := http.Client{Timeout: time.Second}
	for n, d := range r.daemons {
		if d.frozen || !d.runs() {
			continue
		}
		text := ""
		if resp, err := client.Get("http://" + r.explains(n) + "/api/hosts/" + host); err != nil {
			text = err.Error()
		} else {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			text = resp.Status + " " + string(body)
		}
		r.t.Logf("%s: %s had no progress for %v, and %s says: %s", time.Now().Format(clock), host, tellAfter,
			d.name, text)
	}
}

func (r *rig) newSpider(daemon, n int) *process {
	name := fmt.Sprintf("spider%d.%d", daemon, n)
	return &process{t: r.t, name: name, log: filepath.Join(r.dir, name+".log"), args: func() []string {
		return []string{r.bin + "spider", "serve", "--dial", r.dials(daemon), "--log-level", "warn"}
	}}
}
