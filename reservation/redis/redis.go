// Package redis keeps reservations in Redis or Redis Cluster, as crawl host groups (KEYS.md). Each
// operation is one script, so no crash leaves an entry outside its queue between two commands.
//
// If Redis cannot be reached, or its cluster has no master for the keys, every call returns an
// error and nothing else stops: a reservation lasts until its lease ends. If Redis is another
// process than before (a fail-over, a restart), it may have lost the last writes. Then no new
// reservation is given while one from before may be in force, and the penalty after that. Bindings
// and aliases are in force for longer. They count only when a replica has them, if there is one.
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"urlserver/internal/netguard"
	"urlserver/reservation"
)

const (
	dialTimeout  = 2 * time.Second
	writeTimeout = 5 * time.Second // for an answer, too
	retryDial    = time.Second     // after a Redis could not be reached, it is dialled again no sooner
	maxMoves     = 5               // times that a cluster may send a call to another node, as while slots move

	runBatch   = 10   // scripts under way at once, of one caller
	callBatch  = 100  // calls of one script
	turnBatch  = 100  // releases, and reservations, of one script, which nobody else runs beside
	bindBatch  = 500  // bindings of one script
	holdBatch  = 200  // hosts of one script
	holdArgs   = 1000 // from that many arguments on, two for each host and crawl, it gets no further host
	sweepBatch = 500  // of each sort, of one script
	readyMost  = 1000 // in the ready list by the worker
	scanCount  = 1000
)

// Config configures a Store.
type Config struct {
	Addrs    []string // "host:port"; several, or the address of a cluster's node: Redis Cluster
	Prefix   string   // before each key
	Password string
	TLS      *tls.Config // nil: plain TCP
	Penalty  time.Duration
	Log      zerolog.Logger // for keys of a wrong type; the zero value logs nothing
}

// Store is a reservation.Store in Redis. New returns one, and the caller must call Close at the
// end.
type Store struct {
	reservation.SingleCalls
	cfg      Config
	scripts  scripts
	keys     []string // KEYS of every script
	penalty  string
	singles  [reservation.ReleaseHost]batcher[reservation.Call, reservation.Answer] // by verb
	requests batcher[request, granted]

	dial, wait time.Duration // at most, for a connection and for an answer
	replica    time.Duration // at most, until a replica has taken what was written

	changes atomic.Int64  // connections that have begun, and ends of connections
	met     atomic.Int64  // value of changes at the last arrive
	longest atomic.Int64  // lease in ms that this store has asked for
	token   atomic.Uint64 // the highest token that this store has got

	mu     sync.Mutex // guards the client; held while it is made
	client rueidis.Client
	failed time.Time // when connecting failed last
	err    error
	closed bool
}

var _ reservation.Store = (*Store)(nil)

// New returns a store. It connects when it is first used, and again whenever a connection ends.
func New(cfg Config) *Store { return newStore(cfg, read("clock")) }

func newStore(cfg Config, clock string) *Store {
	s := &Store{
		cfg: cfg, scripts: newScripts(clock), keys: []string{cfg.Prefix + "chg_wait{chg}"},
		penalty: strconv.FormatInt(cfg.Penalty.Milliseconds(), 10),
		dial:    dialTimeout, wait: writeTimeout, replica: writeTimeout,
	}
	s.SingleCalls.Batcher = s
	for verb := range s.singles {
		s.singles[verb].ask = s.do
	}
	s.requests.ask = s.runRequests
	return s
}

// Close ends all connections. Calls after it return errors.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client != nil {
		s.client.Close()
	}
}

// connected returns the client. While Redis is away, one caller a second connects, and the others
// get its error.
func (s *Store) connected() (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errors.New("reservation store is closed")
	case s.client != nil:
		return s.client, nil
	case time.Since(s.failed) < retryDial:
		return nil, s.err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:      s.cfg.Addrs,
		Password:         s.cfg.Password,
		TLSConfig:        s.cfg.TLS,
		Dialer:           net.Dialer{Timeout: s.dial, KeepAlive: 15 * time.Second},
		ConnWriteTimeout: s.wait,
		DialCtxFn:        s.dialed,
		// One connection: the client takes one of several at random, and begins it when it takes it first.
		PipelineMultiplex: -1,
		DisableCache:      true,
		DisableRetry:      true, // a script that may have run must not run again
		ClusterOption:     rueidis.ClusterOption{MaxMovedRedirections: maxMoves},
	})
	if err != nil {
		s.failed, s.err = time.Now(),
			fmt.Errorf("reservations in Redis at %q: %w; is it running, and the password right?",
				s.cfg.Addrs, netguard.Redact(err, s.cfg.Password))
		return nil, s.err
	}
	s.client = client
	return client, nil
}

// op is a script with its arguments.
type op struct {
	script *script
	args   []string
}

func (s *Store) command(b rueidis.Builder, o op) rueidis.Completed {
	return b.Evalsha().Sha1(o.script.sha).Numkeys(1).Key(s.keys...).Arg(s.cfg.Prefix).
		Arg(o.args...).Build()
}

// ready returns the client of a Redis that this store has met.
func (s *Store) ready(ctx context.Context) (rueidis.Client, error) {
	c, err := s.connected()
	if err == nil && s.met.Load() != s.changes.Load() {
		err = s.arrive(ctx, c)
	}
	return c, err
}

// run runs scripts, runBatch of them in a round trip. Each has an answer or an error.
func (s *Store) run(ctx context.Context, ops []op) (answers []answer) {
	answers = make([]answer, len(ops))
	for from := 0; from < len(ops); from += runBatch { // the time for an answer is that for all of DoMulti
		c, err := s.ready(ctx)
		if err != nil {
			failed(answers[from:], err)
			break
		}
		var commands []rueidis.Completed
		for _, o := range ops[from:min(from+runBatch, len(ops))] {
			commands = append(commands, s.command(c.B(), o))
		}
		to := from + len(commands)
		for i, result := range c.DoMulti(ctx, commands...) {
			answers[from+i] = answerOf(result)
		}
		s.runUnknown(ctx, c, ops[from:to], answers[from:to])
		s.ended(answers[from:to])
	}
	return answers
}

func failed(answers []answer, err error) []answer {
	for i := range answers {
		answers[i].err = err
	}
	return answers
}

// ended returns the answers as callers get them. After a failed connection the next Redis may be
// another one.
func (s *Store) ended(answers []answer) []answer {
	for i := range answers {
		if err := answers[i].err; err != nil {
			if _, says := rueidis.IsRedisErr(err); !says {
				s.changes.Add(1)
			}
			answers[i].err = netguard.Redact(err, s.cfg.Password)
		}
	}
	return answers
}

// way is how commands reach Redis: a client, or one connection of it.
type way interface {
	B() rueidis.Builder
	Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult
}

// runUnknown sends the text of scripts that this Redis does not know.
func (s *Store) runUnknown(ctx context.Context, by way, ops []op, answers []answer) {
	arrived := false
	for i := range answers {
		if !isNoScript(answers[i].err) {
			continue
		}
		if !arrived { // a Redis that does not know our scripts has not met us before
			arrived = true
			if err := s.arrive(ctx, by); err != nil {
				answers[i].err = err
				continue
			}
		}
		answers[i] = s.eval(ctx, by, ops[i])
	}
}

func isNoScript(err error) bool {
	failure, ok := rueidis.IsRedisErr(err)
	return ok && failure.IsNoScript()
}

// isFull reports whether Redis has no memory left. A script whose first write that needs memory is
// refused has changed nothing.
func isFull(err error) bool {
	failure, ok := rueidis.IsRedisErr(err)
	// a script that passes the error on puts its own place before this text
	return ok && strings.Contains(failure.Error(), "OOM command not allowed")
}

// eval runs a script by its text, which Redis keeps.
func (s *Store) eval(ctx context.Context, by way, o op) answer {
	return answerOf(by.Do(ctx,
		by.B().Eval().Script(o.script.text).Numkeys(1).Key(s.keys...).Arg(s.cfg.Prefix).
			Arg(o.args...).Build()))
}

// arrive checks whether this Redis is another process than before.
func (s *Store) arrive(ctx context.Context, by way) error {
	used, changes := "0", s.changes.Load()
	if s.token.Load() > 0 {
		used = "1"
	}
	a := s.eval(ctx, by, op{&s.scripts.arrive, []string{used, decimal(s.longest.Load()),
		strconv.FormatUint(s.token.Load(), 10), s.penalty}})
	if a.err == nil {
		s.met.Store(changes)
	}
	return netguard.Redact(a.err, s.cfg.Password)
}

func (s *Store) one(ctx context.Context, script *script, args ...string) answer {
	return s.run(ctx, []op{{script, args}})[0]
}

// remember updates the longest lease and the highest token, which arrive passes to Redis.
func (s *Store) remember(lease int64, token uint64) {
	for was := s.longest.Load(); was < lease && !s.longest.CompareAndSwap(was, lease); {
		was = s.longest.Load()
	}
	for was := s.token.Load(); was < token && !s.token.CompareAndSwap(was, token); {
		was = s.token.Load()
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
