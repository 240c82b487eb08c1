package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// request is a request to a child process; reply is its answer.
type (
	request struct {
		Do  string
		Arg string
	}
	reply struct {
		Err  string
		Body json.RawMessage
	}
)

// child is this program in another process. One goroutine may use it.
type child struct {
	role string
	cmd  *exec.Cmd
	in   io.WriteCloser
	to   *json.Encoder
	from *json.Decoder
}

// start starts a child process in a role and sends it its job. It stores the child's answer in
// ready once the child is ready.
func (b *bench) start(ctx context.Context, role string, job, ready any) (*child, error) {
	cmd := exec.CommandContext(ctx, b.self, "-as", role)
	cmd.Stderr = b.errs
	// With cgo, Pebble's cache is memory of C, of which glibc keeps more than 100 MB in arenas of its
	// own. The daemon is built without cgo, so its figures must not contain that.
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	c := &child{role: role, cmd: cmd, in: in, to: json.NewEncoder(in), from: json.NewDecoder(out)}
	if err := c.to.Encode(job); err != nil {
		return nil, errors.Join(c.wrap(err), c.stop())
	}
	if err := c.read(ready); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// ask sends a request to the child and stores its answer in answer, which may be nil.
func (c *child) ask(do, arg string, answer any) error {
	if err := c.to.Encode(request{Do: do, Arg: arg}); err != nil {
		return c.wrap(err)
	}
	return c.read(answer)
}

func (c *child) read(answer any) error {
	var r reply
	if err := c.from.Decode(&r); err != nil {
		return c.wrap(err)
	}
	if r.Err != "" {
		return c.wrap(errors.New(r.Err))
	}
	if answer == nil {
		return nil
	}
	return c.wrap(json.Unmarshal(r.Body, answer))
}

func (c *child) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("child process %s: %w", c.role, err)
}

// profileOf has a child write a CPU profile until it ends, if profiles are wanted.
func (b *bench) profileOf(c *child, name string) error {
	if b.profiles == "" {
		return nil
	}
	return c.ask("profile", filepath.Join(b.profiles, name), nil)
}

// stop ends the child and waits for it.
func (c *child) stop() error {
	return c.wrap(errors.Join(c.in.Close(), c.cmd.Wait()))
}
