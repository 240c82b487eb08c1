// Package tikv keeps reservations in TiKV's raw API in atomic mode: the records and rows of reservation/kv under a
// prefix. Times are PD's (its timestamps), so no machine's clock but PD's matters.
//
// TiKV or PD that cannot be reached answers every call with an error and stops nothing else: what is reserved stays so
// until its lease ends.
package tikv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pingcap/log"
	"github.com/tikv/client-go/v2/config"
	"github.com/tikv/client-go/v2/rawkv"
	pd "github.com/tikv/pd/client"
	"go.uber.org/zap"

	"urlserver/internal/netguard"
	"urlserver/reservation/kv"
	"urlserver/reservation/tikv/internal/lazy"
)

const (
	dialTime = 2 * time.Second // for each address of PD
	callTime = 5 * time.Second // for one call, with what the client tries again
	parallel = 32              // calls at once for what is asked for at once
)

// Config is what a Store works with.
type Config struct {
	Addrs   []string // "host:port" of PD
	Prefix  string   // before each key; nothing else may use keys that begin with it but in atomic mode
	TLS     netguard.ClientFiles
	Penalty time.Duration
}

// Store is a reservation.Store in TiKV. Use New, and Close when done.
type Store struct {
	*kv.Store
	keys *keys
}

// New returns a store. It connects when it is first used, and again whenever a connection ends; an error is a fault of cfg.
func New(cfg Config) (*Store, error) {
	if cfg.TLS != (netguard.ClientFiles{}) && cfg.TLS.CA == "" {
		return nil, errors.New("TiKV over TLS: its CA is needed")
	}
	if _, err := cfg.TLS.Client(); err != nil { // the client reads the files itself, later
		return nil, err
	}
	keys := newKeys(cfg)
	return open(keys, keys.Now), nil
}

func open(keys *keys, now func(context.Context) (int64, error)) *Store {
	return &Store{kv.New(kv.Config{KV: keys, ID: rand.Text(), Penalty: keys.cfg.Penalty, Parallel: parallel, Now: now}), keys}
}

// Close ends all connections. Calls after it are errors.
func (s *Store) Close() { s.keys.client.Close() }

// keys is the kv.KV of the keys under a prefix.
type keys struct {
	cfg    Config
	client lazy.Client[*rawkv.Client]
}

var _ kv.KV = (*keys)(nil)

func newKeys(cfg Config) *keys {
	k := &keys{cfg: cfg}
	k.client.Dial = k.dial
	return k
}

// configure makes the client's settings, which are the whole process'. No log: what matters is in the errors. No streams
// that many requests share: over today's gRPC they are not opened again when a connection has ended.
var configure = sync.OnceFunc(func() {
	log.ReplaceGlobals(zap.NewNop(), &log.ZapProperties{})
	config.UpdateGlobal(func(c *config.Config) { c.TiKVClient.MaxBatchSize = 0 })
})

func (k *keys) dial() (*rawkv.Client, error) {
	configure()
	files := config.Security{ClusterSSLCA: k.cfg.TLS.CA, ClusterSSLCert: k.cfg.TLS.Cert, ClusterSSLKey: k.cfg.TLS.Key}
	client, err := rawkv.NewClientWithOpts(context.Background(), k.cfg.Addrs, rawkv.WithSecurity(files),
		rawkv.WithPDOptions(pd.WithMaxErrorRetry(1), pd.WithCustomTimeoutOption(dialTime)))
	if err != nil {
		return nil, k.wrap(fmt.Errorf("%w; is it running, and TLS right?", err))
	}
	return client.SetAtomicForCAS(true), nil
}

func (k *keys) wrap(err error) error { return fmt.Errorf("TiKV by PD at %q: %w", k.cfg.Addrs, err) }

// call makes one call, in time.
func (k *keys) call(ctx context.Context, do func(context.Context, *rawkv.Client) error) error {
	client, err := k.client.Get()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := do(ctx, client); err != nil {
		return k.wrap(err)
	}
	return nil
}

// Now is kv.Config's: PD's time.
func (k *keys) Now(ctx context.Context) (ms int64, err error) {
	err = k.call(ctx, func(ctx context.Context, c *rawkv.Client) error {
		ms, _, err = c.GetPDClient().GetTS(ctx)
		return err
	})
	return ms, err
}

func (k *keys) Get(ctx context.Context, key string) (value []byte, err error) {
	err = k.call(ctx, func(ctx context.Context, c *rawkv.Client) error {
		value, err = c.Get(ctx, []byte(k.cfg.Prefix+key))
		return err
	})
	return value, err
}

// CompareAndSwap is kv.KV's. The client sends a swap again whose answer was lost; the second one finds what the first
// one wrote.
func (k *keys) CompareAndSwap(ctx context.Context, key string, was, to []byte) (ok bool, err error) {
	err = k.call(ctx, func(ctx context.Context, c *rawkv.Client) error {
		if to == nil {
			ok = true
			return c.Delete(ctx, []byte(k.cfg.Prefix+key))
		}
		found, swapped, err := c.CompareAndSwap(ctx, []byte(k.cfg.Prefix+key), was, to)
		ok = swapped || string(found) == string(to)
		return err
	})
	return ok && err == nil, err
}

func (k *keys) Scan(ctx context.Context, from, before string, limit int) (list []kv.Pair, err error) {
	err = k.call(ctx, func(ctx context.Context, c *rawkv.Client) error {
		found, values, err := c.Scan(ctx, []byte(k.cfg.Prefix+from), []byte(k.cfg.Prefix+before), limit)
		for i, key := range found {
			list = append(list, kv.Pair{Key: string(key[len(k.cfg.Prefix):]), Value: values[i]})
		}
		return err
	})
	return list, err
}
