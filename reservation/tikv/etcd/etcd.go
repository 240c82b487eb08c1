// Package etcd keeps reservations in etcd: the records and rows of reservation/kv under a prefix.
//
// Reads are linearizable and each swap is a transaction, so an etcd that has lost its leader, or its majority, answers
// with errors and gives nothing away: what is reserved stays so until its lease ends. Each change is a revision in
// etcd's history: have etcd compact it (--auto-compaction-retention).
package etcd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"time"

	"urlserver/reservation/kv"
)

const (
	dialTime  = 2 * time.Second  // for a login, too
	callTime  = 5 * time.Second  // for one call; an election takes one or two
	pingAfter = 10 * time.Second // without an answer on a connection
	pingTime  = 3 * time.Second
	parallel  = 32       // calls at once for what is asked for at once
	maxAnswer = 64 << 20 // bytes: a page of records, most of them far smaller than etcd's 1.5 MiB for a request
)

// Config is what a Store works with.
type Config struct {
	Addrs          []string      // "host:port" of members
	Prefix         string        // before each key
	User, Password string        // "": no login
	TLS            *tls.Config   // nil: plain TCP
	Penalty        time.Duration // at least lag counts
}

// Store is a reservation.Store in etcd. Use New, and Close when done.
type Store struct {
	*kv.Store
	keys  *keys
	clock *clock // nil: another's
}

// New returns a store. It connects when it is first used, and again whenever a connection ends; an error is a fault of cfg.
func New(cfg Config) (*Store, error) {
	switch {
	case len(cfg.Addrs) == 0:
		return nil, errors.New("etcd: no address")
	case (cfg.User == "") != (cfg.Password == ""):
		return nil, errors.New("etcd: a user and a password belong together")
	}
	cfg.Penalty = max(cfg.Penalty, lag)
	keys := newKeys(cfg)
	clock := startClock(keys, wall)
	s := open(keys, func(ctx context.Context) (int64, error) {
		now, err := clock.Now(ctx)
		if err != nil {
			err = keys.failed(err) // which etcd, also where it has not failed yet
		}
		return now, err
	})
	s.clock = clock
	return s, nil
}

func open(keys *keys, now func(context.Context) (int64, error)) *Store {
	return &Store{
		Store: kv.New(kv.Config{KV: keys, ID: rand.Text(), Penalty: keys.cfg.Penalty, Parallel: parallel, Now: now}), keys: keys,
	}
}

// Close ends all connections. Calls after it are errors.
func (s *Store) Close() {
	if s.clock != nil {
		s.clock.stop()
	}
	s.keys.client.Close()
}
