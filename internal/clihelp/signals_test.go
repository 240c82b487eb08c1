package clihelp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// signalsEnv makes the test binary a program that goes on when it is interrupted. Its value is how long
// further signals count as the first one.
const signalsEnv = "CLIHELP_TEST_SIGNALS"

func TestMain(m *testing.M) {
	if os.Getenv(signalsEnv) == "" {
		os.Exit(m.Run())
	}
	same, err := time.ParseDuration(os.Getenv(signalsEnv))
	if err != nil {
		panic(err)
	}
	ctx, _ := interrupted(same)
	fmt.Println("begun, SIGINT ignored:", signal.Ignored(os.Interrupt))
	<-ctx.Done()
	fmt.Println("interrupted")
	io.Copy(os.Stdout, os.Stdin)
}

// program is this test binary as a program.
type program struct {
	*exec.Cmd
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
}

// interrupt starts the program, and sends it the first signal when it has begun. It returns when the program
// has been interrupted.
func interrupt(t *testing.T, same time.Duration, first syscall.Signal) *program {
	t.Helper()
	if first == syscall.SIGINT && signal.Ignored(first) {
		t.Skip("SIGINT is ignored here, so it does not interrupt the program")
	}
	p := startProgram(t, same, os.Args[0])
	p.prints(fmt.Sprint("begun, SIGINT ignored: ", signal.Ignored(os.Interrupt)))
	p.send(first)
	p.prints("interrupted")
	return p
}

// startProgram starts a command that is the program, or becomes it.
func startProgram(t *testing.T, same time.Duration, name string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	p := &program{Cmd: exec.CommandContext(ctx, name, args...), t: t}
	p.Env = append(os.Environ(), signalsEnv+"="+same.String())
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) prints(want string) {
	p.t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		p.t.Fatalf("the program printed %q, %v; want %q", p.lines.Text(), p.lines.Err(), want)
	}
}

func (p *program) send(signal syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// TestSameStop: signals that come right after the first, as timeout sends one, do not end the program.
func TestSameStop(t *testing.T) {
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := interrupt(t, time.Hour, first)
		for range 20 {
			p.send(syscall.SIGTERM)
			if _, err := io.WriteString(p.in, "still stopping\n"); err != nil {
				t.Fatal(err)
			}
			p.prints("still stopping")
		}
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("first %v: the program ended with %v; want it to end by itself", first, err)
		}
	}
}

// TestSecondSignal: a program that is not done some time after the first signal ends at another one.
func TestSecondSignal(t *testing.T) {
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := interrupt(t, time.Millisecond, first)
		ended := make(chan struct{})
		go func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(10 * time.Millisecond): // one that came too soon counted as the first
					p.Process.Signal(syscall.SIGTERM)
				}
			}
		}()
		err := p.Wait()
		close(ended)
		if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
			t.Errorf("first %v: the program ended with %v; want by a later signal", first, err)
		}
	}
}

// TestIgnoredSIGINT: a program that was started with SIGINT ignored goes on ignoring it. SIGTERM ends it.
func TestIgnoredSIGINT(t *testing.T) {
	p := startProgram(t, time.Hour, "sh", "-c", `trap '' INT; exec "$0"`, os.Args[0])
	p.prints("begun, SIGINT ignored: true")
	p.send(syscall.SIGTERM)
	p.prints("interrupted")
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the program ended with %v; want it to end by itself", err)
	}
}
