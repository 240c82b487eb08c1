package clihelp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// signalsEnv makes the test binary a program that goes on when it is interrupted.
const signalsEnv = "CLIHELP_TEST_SIGNALS"

func TestMain(m *testing.M) {
	if os.Getenv(signalsEnv) == "" {
		os.Exit(m.Run())
	}
	ctx, _ := Interrupted()
	fmt.Println("begun")
	<-ctx.Done()
	fmt.Println("interrupted")
	time.Sleep(2 * sameStop)
	fmt.Println("still stopping")
	time.Sleep(time.Hour)
}

// TestSecondSignal: a program that is not done some time after the first signal ends at another one. A
// signal that comes right after the first, as timeout sends it, does not end it.
func TestSecondSignal(t *testing.T) {
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), signalsEnv+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for _, step := range []struct {
			printed string
			then    syscall.Signal
		}{
			{printed: "begun", then: first}, {printed: "interrupted", then: syscall.SIGTERM},
			{printed: "still stopping", then: syscall.SIGTERM},
		} {
			if !lines.Scan() || lines.Text() != step.printed {
				t.Fatalf("first %v: the program printed %q, %v; want %q", first, lines.Text(), lines.Err(),
					step.printed)
			}
			if err := cmd.Process.Signal(step.then); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan struct{})
		go func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(sameStop): // the machine stood still, and the last one counted as the first
					cmd.Process.Signal(syscall.SIGTERM)
				}
			}
		}()
		err = cmd.Wait()
		close(ended)
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
			t.Errorf("first %v: the program ended with %v; want by a later signal", first, err)
		}
	}
}
