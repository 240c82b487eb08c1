package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// player is a role of a child process.
type player interface {
	// open receives the job. It returns what the parent needs before it goes on.
	open(ctx context.Context) (ready any, err error)
	close() error
}

// answerer is a player that answers requests which only its role knows.
type answerer interface {
	do(ctx context.Context, r request) (answer any, err error)
}

func newPlayer(role string) (player, error) {
	switch role {
	case "daemon":
		return &daemon{}, nil
	case "spider":
		return &spider{}, nil
	case "wire":
		return &wire{}, nil
	case "dns":
		return &names{}, nil
	case "scaled":
		return &scaled{}, nil
	case "reservation":
		return &service{}, nil
	case "puts":
		return &putServer{}, nil
	case "frontier":
		return &frontierServer{}, nil
	case "broker":
		return &broker{}, nil
	}
	return nil, fmt.Errorf("-as %s: no such role", role)
}

// play plays a role until in ends. It reads the job from in, then requests.
func play(ctx context.Context, role string, in io.Reader, out io.Writer) (err error) {
	p, err := newPlayer(role)
	if err != nil {
		return err
	}
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	if err := from.Decode(p); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	ready, err := p.open(ctx)
	defer func() { err = errors.Join(err, p.close()) }()
	if err := answer(to, ready, err); err != nil {
		return err
	}
	endProfile := func() error { return nil }
	defer func() { err = errors.Join(err, endProfile()) }()
	for {
		var r request
		if err := from.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var body any
		switch r.Do {
		case "usage":
			body, err = readUsage()
		case "profile":
			endProfile, err = startProfile(r.Arg)
		default:
			if one, knows := p.(answerer); knows {
				body, err = one.do(ctx, r)
			} else {
				err = unknown(r)
			}
		}
		if err := answer(to, body, err); err != nil {
			return err
		}
	}
}

func answer(to *json.Encoder, body any, err error) error {
	if err != nil {
		return to.Encode(reply{Err: err.Error()})
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return to.Encode(reply{Body: text})
}

// unknown is the error for a request that a role does not know.
func unknown(r request) error { return fmt.Errorf("request %q: not known", r.Do) }
