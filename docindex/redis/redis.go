// Package redis keeps a doc index in Redis or Redis Cluster, so that any daemon can serve any queue
// (KEYS.md). Redis has all state. Each step on a shard is one script, so no crash loses anything
// between two commands.
//
// While Redis cannot be reached, every call returns an error, and nothing else stops. The documents
// that a dead daemon has taken are due again when its lease has passed.
package redis

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/internal/netguard"
)

const (
	dialTimeout  = 2 * time.Second
	writeTimeout = 10 * time.Second // for an answer, too
	retryDial    = time.Second      // after a Redis could not be reached, it is dialled again no sooner
	askTimeout   = 10 * time.Second // of calls without a context of their own

	maxMoves = 5 // times that a cluster may send a call to another node, as while slots move
)

// Config configures a Store.
type Config struct {
	Addrs    []string // "host:port"; several, or the address of a cluster's node: Redis Cluster
	Prefix   string   // before each key; no braces
	Password string
	TLS      *tls.Config    // nil: plain TCP
	Lease    time.Duration  // the documents of a daemon are due again when it has sent no heartbeat for this long
	Janitor  time.Duration  // the longest time between two heartbeats; Lease/3 at most
	Log      zerolog.Logger // for keys of a wrong type; the zero value logs nothing
}

// Store is a docindex.Store in Redis, for one daemon among any number. New returns one, and the
// caller must call Close at the end. A Store is safe for concurrent use.
type Store struct {
	cfg        Config
	owner      string
	bases      [shards]string
	slots      chan struct{} // a lock of handOut; it holds an item while unlocked
	place      atomic.Int64  // the last place in a ring that this daemon has given
	gap        atomic.Int64  // of the slots, ms
	rules      atomic.Pointer[func(host []byte) docindex.HostRule]
	clock      func() int64 // in µs since 1970; nil: Redis' own
	local      func() time.Time
	ahead      atomic.Int64 // ns by which Redis' clock is ahead of local
	pace       clientPace
	budgets    budgets
	turns      turns
	background sync.WaitGroup
	end        context.CancelFunc

	dial, wait time.Duration // at most, for a connection and for an answer

	number uint64         // of the last take; only whoever has slots uses it
	heard  [shards]uint64 // by shard: the last take whose answer came; likewise

	mu       sync.Mutex // guards all below; held while the client is made
	client   rueidis.Client
	failed   time.Time // when connecting failed last
	err      error
	closed   bool
	tag      string        // begins the DOC_IDs of this Redis
	freed    chan struct{} // closed when a queue may be served by calls; nil: nobody waits for that
	wakes    []func()
	backs    []func(*docindex.Outcomes)
	last     docindex.StoreStats // the counts when Redis answered last
	onDelete func(*docindex.Outcomes)
	// by crawl name: the round of a finished crawl that this daemon has listed and that is not
	// acknowledged
	listed          map[string]uint64
	snapshots       map[string]*snapshot // by what the names of their crawls begin with
	deferredUpdates [shards][]string     // by shard: arguments of failed updates, see updateHosts
	purging         map[string]bool      // by name: crawls that this daemon has stopped and will purge, or is purging
	warned          map[string]time.Time // when the log named a key of a wrong type last
	backingOff      map[string]struct{}  // hosts of which a client of this daemon reported 429 or 503

	// cancel ends documents in the slots; nil: there are no slots.
	cancel func(context.Context, *docindex.Outcomes) (ended int, err error)

	leaseLost func() // nil: there are no slots

	alive    time.Time     // when the last heartbeat that Redis answered began; only the heartbeat uses it
	lastSeqs [shards]int64 // how much was scheduled in each; only the heartbeat uses it
	inbox    chan struct{} // holds one item when there may be notifications
	others   time.Duration // how long a purge waits for the slots of other daemons
}

var _ docindex.Store = (*Store)(nil)

// New returns a store. It connects when it is first used, and again whenever a connection ends.
func New(cfg Config) *Store {
	s := newStore(cfg, nil)
	ctx, end := context.WithCancel(context.Background())
	s.end, s.others = end, othersWait
	s.background.Go(func() { s.heartbeat(ctx) })
	s.background.Go(func() { s.processInbox(ctx) })
	s.background.Go(func() { s.listen(ctx) })
	return s
}

func newStore(cfg Config, clock func() int64) *Store {
	s := &Store{
		cfg: cfg, owner: rand.Text(), slots: make(chan struct{}, 1), clock: clock, local: time.Now, end: func() {},
		dial: dialTimeout, wait: writeTimeout,
		listed: map[string]uint64{}, purging: map[string]bool{}, snapshots: map[string]*snapshot{},
		warned: map[string]time.Time{}, backingOff: map[string]struct{}{}, inbox: make(chan struct{}, 1),
	}
	for i := range s.bases {
		s.bases[i] = fmt.Sprintf("%s{u%d}", cfg.Prefix, i)
	}
	s.slots <- struct{}{}
	return s
}

// Close returns this daemon's documents and ends all connections. Calls after it fail.
func (s *Store) Close() error {
	s.end()
	s.background.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	err := s.retire(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client != nil {
		s.client.Close()
		return err
	}
	return nil
}

// connected returns the client. While Redis is away, one caller a second connects, and the others
// get its error.
func (s *Store) connected(ctx context.Context) (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errors.New("the doc index in Redis is closed")
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
		DisableCache:     true,
		DisableRetry:     true, // a script that may have run must not run again
		ClusterOption:    rueidis.ClusterOption{MaxMovedRedirections: maxMoves},
	})
	if err == nil {
		if s.tag, err = join(ctx, client, s.bases[0]); err == nil {
			s.client = client
			return client, nil
		}
		client.Close()
	}
	s.failed, s.err = time.Now(),
		fmt.Errorf("the doc index in Redis at %q %w: %w; is it running, and the password right?",
			s.cfg.Addrs, docindex.ErrUnavailable, netguard.Redact(err, s.cfg.Password))
	return nil, s.err
}

// version is the version of the keys' format. The store refuses a Redis of another version, because
// scripts that count differently would spoil the counts for both. It reads versions 1 and 2 as they
// are, and gives that Redis this version. Documents of version 1 are named by their URLs alone,
// without their owners. Documents of version 2 have metadata and nothing else, and the queues of
// version 2 do not count documents that are due later.
const version = "3"

func isOldVersion(is string) bool { return is == "1" || is == "2" }

// join makes an empty Redis a store, or checks the version of the one that is there. tag begins the
// DOC_IDs that the store gives, so that those of another store are not taken for them.
func join(ctx context.Context, c rueidis.Client, base string) (tag string, err error) {
	is, err := agree(ctx, c, base+":version", version)
	if err != nil {
		return "", err
	}
	if isOldVersion(is) {
		is, err = version, c.Do(ctx, c.B().Set().Key(base+":version").Value(version).Build()).Error()
		if err != nil {
			return "", err
		}
	}
	if is != version {
		return "", fmt.Errorf("it is of version %s, and this program reads version %s: run the program "+
			"that wrote it, or choose another docindex.prefix", is, version)
	}
	return agree(ctx, c, base+":tag", rand.Text()[:8])
}

// rejoin makes a Redis that was emptied (FLUSHALL) the store that it was: with its version, so that
// a program of another one does not take it for new, and with the tag in the DOC_IDs that this
// daemon gives.
func (s *Store) rejoin(ctx context.Context) {
	c, err := s.connected(ctx)
	if err != nil {
		return
	}
	s.mu.Lock()
	tag := s.tag
	s.mu.Unlock()
	for key, value := range map[string]string{":version": version, ":tag": tag} {
		// The next heartbeat repeats what fails.
		_ = c.Do(ctx, c.B().Set().Key(s.bases[0]+key).Value(value).Nx().Build()).Error()
	}
}

// agree sets a key unless it has a value, and returns its value. It only reads a key that has one,
// which works in a full Redis, too.
func agree(ctx context.Context, c rueidis.Client, key, value string) (string, error) {
	has, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
	if isWrongType(err) {
		return "", broken(key)
	}
	if !rueidis.IsRedisNil(err) {
		return has, err
	}
	err = c.Do(ctx, c.B().Set().Key(key).Value(value).Nx().Build()).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", err
	}
	return c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
}

// asked bounds a call whose interface has no context.
func asked() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), askTimeout)
}
