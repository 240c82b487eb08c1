package clihelp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef returns an error in the command line.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Takes turns errors of check into errors in the command line.
func Takes(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// Main runs a program until it is done or interrupted. It prints the error, and returns the exit
// status.
func Main(program string, run func(context.Context) error) int {
	ctx, stop := Interrupted()
	err := run(ctx)
	stop()
	if err != nil {
		PrintError(os.Stderr, program, err)
	}
	return ExitStatus(err)
}

// ExitStatus returns the exit status for an error: 0 for done, 1 for failed, 2 for an error in the
// command line.
func ExitStatus(err error) int {
	if err == nil {
		return exitDone
	}
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	return exitFailed
}

// Run executes a command line of root until it is done or ctx ends. in is nil for the input of the
// process.
func Run(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) error {
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	root.SetIn(in)
	plain := &Plain{W: out} // text from servers must not control the terminal
	root.SetOut(plain)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	return cmp.Or(err, plain.Failed())
}
