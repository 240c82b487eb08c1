// Package etcd is a reservation store in etcd: the records and rows of reservation/kv under a
// prefix.
//
// Reads are linearizable and each swap is a transaction. An etcd without a leader or a majority
// answers with errors, and no lease is given twice: a lease stays until its end. Each change is a
// revision in etcd's history, so etcd should compact it (--auto-compaction-retention).
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
	dialTime  = 2 * time.Second  // with the login
	callTime  = 5 * time.Second  // of one call; an election takes one or two seconds
	pingAfter = 10 * time.Second // time without an answer on a connection
	pingTime  = 3 * time.Second
	parallel  = 32 // concurrent calls of one batch
	// bytes: a page of records; most are far smaller than etcd's limit of 1.5 MiB for a request
	maxAnswer = 64 << 20
)

// Config is the configuration of a Store.
type Config struct {
	Addrs          []string      // "host:port" of members
	Prefix         string        // before each key
	User, Password string        // "": no login
	TLS            *tls.Config   // nil: plain TCP
	Penalty        time.Duration // at least lag
}

// Store is a reservation.Store in etcd. Create it with New, and Close it.
type Store struct {
	*kv.Store
	keys  *keys
	clock *clock // nil: the test has a clock of its own
}

// New returns a store. It connects on first use, and again after a connection ends. An error means
// that cfg is wrong.
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
			err = keys.failed(err) // adds which etcd it is
		}
		return now, err
	}, clock.late)
	s.clock = clock
	return s, nil
}

func open(keys *keys, now func(context.Context) (int64, error), late func() int64) *Store {
	return &Store{
		Store: kv.New(kv.Config{KV: keys, ID: rand.Text(), Penalty: keys.cfg.Penalty, Parallel: parallel,
			Now: now, Late: late}), keys: keys,
	}
}

// Close closes all connections. Later calls return errors.
func (s *Store) Close() {
	if s.clock != nil {
		s.clock.stop()
	}
	s.keys.client.Close()
}
