// Command hostreservation serves reservations of hosts to crawlers over gRPC, from memory or Redis.
package main

import (
	"os"

	"github.com/spf13/pflag"

	"urlserver/reservation"
	"urlserver/reservation/cli"
	"urlserver/reservation/memory"
	"urlserver/reservation/redis"
)

func main() { os.Exit(cli.Main(stores())) }

func stores() cli.Stores {
	password := ""
	return cli.Stores{
		Names: []string{"memory", "redis"}, Local: "memory", Far: "Redis", Flag: "redis",
		At: "Redis; several: of Redis Cluster", Addr: "127.0.0.1:6379",
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&password, "redis-password", os.Getenv("REDIS_PASSWORD"),
				"of Redis; or set REDIS_PASSWORD")
			f.Lookup("redis-password").DefValue = "" // help shows none
		},
		Open: func(o cli.Opening) (reservation.Store, func(), error) {
			if o.Store == "memory" {
				return memory.New(memory.Config{Penalty: o.Penalty}), func() {}, nil
			}
			secure, err := o.TLS.Client()
			if err != nil {
				return nil, nil, err
			}
			r := redis.New(redis.Config{Addrs: o.Addrs, Prefix: o.Prefix, Password: password, TLS: secure,
				Penalty: o.Penalty, Log: o.Log})
			return r, r.Close, nil
		},
	}
}
