// Command hostreservation serves reservations of hosts to crawlers over gRPC, from TiKV or etcd.
package main

import (
	"os"

	"github.com/spf13/pflag"

	"urlserver/reservation"
	"urlserver/reservation/cli"
	"urlserver/reservation/tikv"
	"urlserver/reservation/tikv/etcd"
)

func main() { os.Exit(cli.Main(stores())) }

func stores() cli.Stores {
	user, password := "", ""
	return cli.Stores{
		Names: []string{"tikv", "etcd"}, Far: "TiKV or etcd", Flag: "store",
		At: "TiKV's PD, or of etcd", Addr: "127.0.0.1:2379",
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&user, "etcd-user", "", "of etcd")
			f.StringVar(&password, "etcd-password", os.Getenv("ETCD_PASSWORD"), "of etcd; or set ETCD_PASSWORD")
			f.Lookup("etcd-password").DefValue = "" // help shows none
		},
		Open: func(o cli.Opening) (reservation.Store, func(), error) {
			if o.Store == "tikv" {
				s, err := tikv.New(tikv.Config{Addrs: o.Addrs, Prefix: o.Prefix, TLS: o.TLS, Penalty: o.Penalty})
				if err != nil {
					return nil, nil, err
				}
				return s, s.Close, nil
			}
			secure, err := o.TLS.Client()
			if err != nil {
				return nil, nil, err
			}
			s, err := etcd.New(etcd.Config{Addrs: o.Addrs, Prefix: o.Prefix, User: user, Password: password,
				TLS: secure, Penalty: o.Penalty})
			if err != nil {
				return nil, nil, err
			}
			return s, s.Close, nil
		},
	}
}
