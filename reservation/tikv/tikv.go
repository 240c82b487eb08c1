// Package tikv is a reservation store in TiKV's raw API in atomic mode: the records and rows of
// reservation/kv under a prefix. Times are PD's timestamps, so no other clock matters.
//
// While TiKV or PD cannot be reached, calls return errors, and leases stay until their end.
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
	"urlserver/reservation/tikv/internal/lazyconn"
)

const (
	dialTime = 2 * time.Second // for each address of PD
	callTime = 5 * time.Second // of one call with the client's retries
	parallel = 32              // concurrent calls of one batch
)

// Config is the configuration of a Store.
type Config struct {
	Addrs   []string // "host:port" of PD
	Prefix  string   // before each key; others may use keys with this prefix in atomic mode only
	TLS     netguard.ClientFiles
	Penalty time.Duration
}

// Store is a reservation.Store in TiKV. Create it with New, and Close it.
type Store struct {
	*kv.Store
	keys *keys
}

// New returns a store. It connects on first use, and again after a connection ends. An error means
// that cfg is wrong.
func New(cfg Config) (*Store, error) {
	if cfg.TLS != (netguard.ClientFiles{}) && cfg.TLS.CA == "" {
		return nil, errors.New("TiKV over TLS: its CA is needed")
	}
	if _, err := cfg.TLS.Client(); err != nil { // the client reads the files later
		return nil, err
	}
	keys := newKeys(cfg)
	return open(keys, keys.Now), nil
}

func open(keys *keys, now func(context.Context) (int64, error)) *Store {
	return &Store{kv.New(kv.Config{KV: keys, ID: rand.Text(), Penalty: keys.cfg.Penalty, Parallel: parallel,
		Now: now}), keys}
}

// Close closes all connections. Later calls return errors.
func (s *Store) Close() { s.keys.client.Close() }

// keys is a kv.KV whose keys have a prefix.
type keys struct {
	cfg    Config
	client lazyconn.Client[*rawkv.Client]
}

var (
	_ kv.KV     = (*keys)(nil)
	_ kv.ManyKV = (*keys)(nil)
)

func newKeys(cfg Config) *keys {
	k := &keys{cfg: cfg}
	k.client.Dial = k.dial
	return k
}

// configure sets the client's settings, which are global to the process. It turns off the client's
// log, because the errors have what matters, and shared streams, because with current gRPC they are
// not opened again after a connection has ended.
var configure = sync.OnceFunc(func() {
	log.ReplaceGlobals(zap.NewNop(), &log.ZapProperties{})
	config.UpdateGlobal(func(c *config.Config) { c.TiKVClient.MaxBatchSize = 0 })
})

func (k *keys) dial() (*rawkv.Client, error) {
	configure()
	files := config.Security{ClusterSSLCA: k.cfg.TLS.CA, ClusterSSLCert: k.cfg.TLS.Cert,
		ClusterSSLKey: k.cfg.TLS.Key}
	client, err := rawkv.NewClientWithOpts(context.Background(), k.cfg.Addrs, rawkv.WithSecurity(files),
		rawkv.WithPDOptions(pd.WithMaxErrorRetry(1), pd.WithCustomTimeoutOption(dialTime)))
	if err != nil {
		return nil, k.wrap(fmt.Errorf("%w; is it running, and TLS right?", err))
	}
	return client.SetAtomicForCAS(true), nil
}

func (k *keys) wrap(err error) error { return fmt.Errorf("TiKV by PD at %q: %w", k.cfg.Addrs, err) }

// call makes one call within callTime.
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

// Now is for kv.Config. It returns PD's time.
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

// GetMany implements kv.ManyKV.
func (k *keys) GetMany(ctx context.Context, list []string) (values [][]byte, err error) {
	full := make([][]byte, len(list))
	for i, key := range list {
		full[i] = []byte(k.cfg.Prefix + key)
	}
	err = k.call(ctx, func(ctx context.Context, c *rawkv.Client) error {
		values, err = c.BatchGet(ctx, full)
		for i, value := range values {
			if len(value) == 0 { // the client returns an empty value for a key that has none
				values[i] = nil
			}
		}
		return err
	})
	return values, err
}

// CompareAndSwap implements kv.KV. The client repeats a swap whose answer was lost; the second one
// finds the value that the first one wrote.
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
