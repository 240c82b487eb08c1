package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"urlserver/configs"
	"urlserver/internal/netguard"
	"urlserver/internal/systemd"
	"urlserver/urlserver/httpapi"
)

// afterRestart is the reason why a changed setting has no effect yet.
const afterRestart = "holds only after a restart"

// reloadAsk is a request to read the settings again.
type reloadAsk struct {
	done chan<- reloadAnswer // has room for one
}

type reloadAnswer struct {
	told httpapi.Reloaded
	err  error
}

// reloads handles requests to read the settings again until ctx ends.
func (s *server) reloads(ctx context.Context) {
	for {
		select {
		case <-s.hups:
			_, _ = s.reload(ctx) // reload logs its errors
		case ask := <-s.asks:
			told, err := s.reload(ctx)
			ask.done <- reloadAnswer{told, err}
		case <-ctx.Done():
			return
		}
	}
}

// askReload makes reloads read the settings, and returns the result.
func (s *server) askReload(ctx context.Context) (httpapi.Reloaded, error) {
	done := make(chan reloadAnswer, 1)
	select {
	case s.asks <- reloadAsk{done}:
	case <-ctx.Done():
		return httpapi.Reloaded{}, ctx.Err()
	}
	select {
	case answer := <-done:
		return answer.told, answer.err
	case <-ctx.Done():
		return httpapi.Reloaded{}, ctx.Err()
	}
}

// reload applies what changed in the settings file, and reads the certificates again.
// A bad file changes nothing.
func (s *server) reload(ctx context.Context) (httpapi.Reloaded, error) {
	s.tell(systemd.Reloading)
	defer s.tell(systemd.Ready)
	told, err := s.takeOver(ctx)
	if list, several := mistakesOf(err); several {
		s.log.Error().Str("file", s.file).Strs("mistakes", list).Msg("settings refused; nothing is changed")
		return told, err
	}
	if err != nil {
		s.log.Error().Str("file", s.file).Err(err).Msg("settings refused; nothing is changed")
		return told, err
	}
	s.log.Info().Str("file", s.file).Strs("applied", told.Applied).Msg("settings read again")
	var restart []string
	for _, r := range told.Refused {
		if r.Why == afterRestart {
			restart = append(restart, r.Setting)
		} else {
			s.log.Error().Str("setting", r.Setting).Str("why", r.Why).Msg("not taken over; the former goes on")
		}
	}
	if len(restart) > 0 {
		s.log.Warn().Strs("settings", restart).Msg("these have changed in the file, and hold only after a restart")
	}
	return told, nil
}

func (s *server) takeOver(ctx context.Context) (told httpapi.Reloaded, err error) {
	cfg, err := s.load()
	if err != nil {
		return told, httpapi.RefusedSettings{Err: fmt.Errorf("settings refused; nothing is changed: %w", err)}
	}
	applied, restart, err := s.daemon.Reconfigure(ctx, cfg)
	if err != nil {
		return told, err
	}
	s.level.set(s.daemon.Settings().Log.Level)
	told.Applied = applied
	for _, name := range restart {
		told.Refused = append(told.Refused, httpapi.RefusedSetting{Setting: name, Why: afterRestart})
	}
	s.reloadCerts("spider", s.spiderCerts, &told)
	if s.frontier != nil {
		s.reloadCerts("frontier", s.frontier.Certificates(), &told)
	}
	return told, nil
}

// reloadCerts reads the certificates of a listener again. It reports them as applied, whether they
// have changed or not.
func (s *server) reloadCerts(key string, files *netguard.ServerTLS, told *httpapi.Reloaded) {
	if files == nil {
		return
	}
	if err := files.Reload(); err != nil {
		told.Refused = append(told.Refused, httpapi.RefusedSetting{Setting: key + ".tls_cert",
			Why: "its files: " + err.Error()})
		return
	}
	told.Certificates = append(told.Certificates, key)
}

// watchCerts reads the certificates of the listeners again when their files change, until ctx ends.
func (s *server) watchCerts(ctx context.Context, helpers *sync.WaitGroup) {
	watch := func(key string, files *netguard.ServerTLS) {
		if files != nil {
			helpers.Go(func() { files.Watch(ctx, netguard.ReloadPeriod, func(err error) { s.certsRead(key, err) }) })
		}
	}
	watch("spider", s.spiderCerts)
	if s.frontier != nil {
		watch("frontier", s.frontier.Certificates())
	}
}

func (s *server) certsRead(key string, err error) {
	if err != nil {
		s.log.Error().Str("listener",
			key).Err(err).Msg("certificate files have changed and cannot be used; the former go on")
		return
	}
	s.log.Info().Str("listener", key).Msg("certificate files have changed, and were read again")
}

// mistakesOf lists the mistakes of a settings file, if err has them.
func mistakesOf(err error) (list []string, ok bool) {
	e, ok := errors.AsType[*configs.Error](err)
	if !ok {
		return nil, false
	}
	for _, m := range e.Mistakes {
		list = append(list, m.String())
	}
	return list, true
}
