package etcd

import (
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"urlserver/reservation/kv"
	"urlserver/reservation/tikv/internal/lazyconn"
)

// keys is a kv.KV whose keys have a prefix.
type keys struct {
	cfg    Config
	client lazyconn.Client[*clientv3.Client]
}

var (
	_ kv.KV     = (*keys)(nil)
	_ kv.TxnKV  = (*keys)(nil)
	_ kv.ManyKV = (*keys)(nil)
)

func newKeys(cfg Config) *keys {
	k := &keys{cfg: cfg}
	k.client.Dial = k.dial
	return k
}

// dial makes the client, and logs in if there is a login.
func (k *keys) dial() (*clientv3.Client, error) {
	scheme := "http://"
	if k.cfg.TLS != nil {
		scheme = "https://"
	}
	endpoints := make([]string, len(k.cfg.Addrs))
	for i, addr := range k.cfg.Addrs {
		endpoints[i] = scheme + addr
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		Username:             k.cfg.User,
		Password:             k.cfg.Password,
		TLS:                  k.cfg.TLS,
		DialTimeout:          dialTime,
		DialKeepAliveTime:    pingAfter,
		DialKeepAliveTimeout: pingTime,
		MaxCallRecvMsgSize:   maxAnswer,
		// After an outage a service has to be back before another one takes its clock over; see stands.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: tick, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 2 * tick},
			MinConnectTimeout: dialTime / 2,
		})},
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, k.failed(err)
	}
	return client, nil
}

func (k *keys) failed(err error) error { return fmt.Errorf("etcd at %q: %w", k.cfg.Addrs, err) }

// call makes one call within callTime.
func (k *keys) call(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	client, err := k.client.Get()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := do(ctx, client); err != nil {
		return k.failed(err)
	}
	return nil
}

func (k *keys) Get(ctx context.Context, key string) (value []byte, err error) {
	err = k.call(ctx, func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Get(ctx, k.cfg.Prefix+key)
		if err == nil && len(got.Kvs) > 0 {
			value = got.Kvs[0].Value
		}
		return err
	})
	return value, err
}

// readOps is how many keys one transaction reads. etcd refuses transactions of more than
// --max-txn-ops, 128 unless said otherwise.
const readOps = 100

// GetMany implements kv.ManyKV.
func (k *keys) GetMany(ctx context.Context, list []string) (values [][]byte, err error) {
	for some := range slices.Chunk(list, readOps) {
		ops := make([]clientv3.Op, len(some))
		for i, key := range some {
			ops[i] = clientv3.OpGet(k.cfg.Prefix + key)
		}
		if err := k.call(ctx, func(ctx context.Context, c *clientv3.Client) error {
			got, err := c.Txn(ctx).Then(ops...).Commit()
			if err != nil {
				return err
			}
			for _, one := range got.Responses {
				var value []byte
				if found := one.GetResponseRange().Kvs; len(found) > 0 {
					value = found[0].Value
				}
				values = append(values, value)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (k *keys) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	if to != nil {
		return k.swap(ctx, key, was, to)
	}
	err := k.call(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Delete(ctx, k.cfg.Prefix+key)
		return err
	})
	return err == nil, err
}

func (k *keys) SwapAndMove(ctx context.Context, key string, was, to []byte, before,
	row string) (bool, error) {
	return k.swap(ctx, key, was, to, clientv3.OpPut(k.cfg.Prefix+row, "."),
		clientv3.OpDelete(k.cfg.Prefix+before))
}

// swap swaps a value, and then does the rest in the same transaction. etcd's client may send a
// transaction twice; the second one finds the value that the first one wrote.
func (k *keys) swap(ctx context.Context, key string, was, to []byte,
	rest ...clientv3.Op) (ok bool, err error) {
	key = k.cfg.Prefix + key
	is := clientv3.Compare(clientv3.Value(key), "=", string(was))
	if was == nil {
		is = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	rest = append(rest, clientv3.OpPut(key, string(to)))
	err = k.call(ctx, func(ctx context.Context, c *clientv3.Client) error {
		done, err := c.Txn(ctx).If(is).Then(rest...).Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return err
		}
		if ok = done.Succeeded; !ok {
			found := done.Responses[0].GetResponseRange().Kvs
			ok = len(found) > 0 && string(found[0].Value) == string(to)
		}
		return nil
	})
	return ok, err
}

func (k *keys) Scan(ctx context.Context, from, before string, limit int) (list []kv.Pair, err error) {
	err = k.call(ctx, func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Get(ctx, k.cfg.Prefix+from, clientv3.WithRange(k.cfg.Prefix+before),
			clientv3.WithLimit(int64(limit)))
		if err != nil {
			return err
		}
		for _, one := range got.Kvs {
			list = append(list, kv.Pair{Key: string(one.Key)[len(k.cfg.Prefix):], Value: one.Value})
		}
		return nil
	})
	return list, err
}
