package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"urlserver/configs"
	"urlserver/internal/netguard"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/memory"
	"urlserver/reservation/redis"
	"urlserver/urlserver"
)

// openReserver opens the reservation that the daemon shares with others, if any. gap is the least
// time between two requests to a group. With inside, spiders and URL Frontier clients of a daemon
// that shares with nobody share a reservation in its memory.
func (s *server) openReserver(cfg configs.Reservation, gap time.Duration, inside bool) (err error) {
	penalty := max(cfg.Penalty, gap) // a daemon that lost its lease may have sent a request at its end
	if cfg.Kind == configs.ReservationNone {
		if inside {
			s.reserver = &urlserver.Reserver{Store: memory.New(memory.Config{Penalty: penalty}), Lease: cfg.Lease,
				Holder: holder(), Log: s.log}
			s.janitor = cfg.Janitor
		}
		return nil
	}
	secure, err := netguard.ClientFiles{Cert: cfg.TLSCert, Key: cfg.TLSKey, CA: cfg.TLSCA}.Client()
	if err != nil {
		return fmt.Errorf("reservation: %w", err)
	}
	s.reserver = &urlserver.Reserver{Lease: cfg.Lease, Holder: holder(), Log: s.log}
	if cfg.Kind == configs.ReservationGRPC {
		store, err := grpcclient.New(grpcclient.Config{Addrs: cfg.Addrs, Token: string(cfg.Token), TLS: secure})
		if err != nil {
			return err
		}
		s.reserver.Store, s.closeReservation = store, store.Close
		return nil
	}
	store := redis.New(redis.Config{
		Addrs: cfg.Addrs, Prefix: cfg.Prefix, Password: string(cfg.Token), TLS: secure,
		Penalty: penalty, Log: s.log,
	})
	s.reserver.Store, s.closeReservation = store, func() error { store.Close(); return nil }
	s.janitor = cfg.Janitor
	return nil
}

// holder returns the name of this daemon for others who ask which daemon has a group.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

const sweepTime = time.Minute // of one sweep

// sweepReservation sweeps the reservation until ctx ends. Other daemons do so, too. A service
// sweeps its own store.
func (s *server) sweepReservation(ctx context.Context) {
	if s.janitor == 0 {
		return
	}
	ticks := time.NewTicker(s.janitor)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		sweep, cancel := context.WithTimeout(ctx, sweepTime)
		err := s.reserver.Store.Sweep(sweep)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.log.Debug().Err(err).Msg("reservation: its janitor could not work; it tries again")
		}
	}
}
