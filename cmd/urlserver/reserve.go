package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"urlserver/configs"
	"urlserver/internal/netguard"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/redis"
	"urlserver/urlserver"
)

// openReserver makes the reservation that the daemon shares with others, if it does. gap is what is to lie between two
// requests to a group.
func (s *server) openReserver(cfg configs.Reservation, gap time.Duration) (err error) {
	if cfg.Kind == configs.ReservationNone {
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
		Penalty: max(cfg.Penalty, gap), // whoever lost its lease may have asked at the end of it
		Log:     s.log,
	})
	s.reserver.Store, s.closeReservation = store, func() error { store.Close(); return nil }
	s.janitor = cfg.Janitor
	return nil
}

// holder names this daemon to those who ask who has a group.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

const sweepTime = time.Minute // for one sweep

// sweepReservation is one of the janitors of the reservation until ctx ends; a service has its own.
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
